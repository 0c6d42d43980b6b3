"""Backends that are wrong in one way each: `python broken.py NAME [options]` is the fake backend with NAME done to it.

There is a variant for every rule of the rule table (the rule is not enforced: `rule-ID`), and one for each other thing that the
suite holds a backend to. The docstring of a variant says what is wrong; matrix.py tells which checks of the suite see it.
"""

from __future__ import annotations

import copy
import json
import sys
import unicodedata
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from codex_replay.protocol.responses import items as responses
from codex_replay.protocol.responses import settings, steps

Event = dict[str, Any]
VARIANTS: dict[str, Callable[[], None]] = {}


def variant(patch: Callable[[], None]) -> Callable[[], None]:
    """Enter a patch into the table under its own name."""
    VARIANTS[patch.__name__.replace("_", "-")] = patch
    return patch


def stream(change: Callable[[list[Event]], Iterable[Event]]) -> Callable[[list[Event]], Iterable[Event]]:
    """Enter a change of the events of every stream into the table. What it yields is numbered anew, where it was numbered."""

    def patch() -> None:
        old = responses.steps_of

        def steps_of(*given: Any) -> Iterable[Any]:
            made = list(old(*given))
            if not all(isinstance(step, steps.Send) for step in made):
                return made
            events = list(change([copy.deepcopy(dict(step.event)) for step in made]))
            for number, event in enumerate(events):
                if "sequence_number" in event and change.__name__ != "numbers_from_one":
                    event["sequence_number"] = number
            return [steps.Send(event) for event in events]

        _replace_everywhere(old, steps_of)

    patch.__doc__ = change.__doc__
    VARIANTS[change.__name__.replace("_", "-")] = patch
    return change


def _replace_everywhere(old: Callable[..., Any], new: Callable[..., Any]) -> None:
    """Put another function in the place of one in every module that has imported it."""
    for name, module in list(sys.modules.items()):
        if name.startswith("codex_") and getattr(module, old.__name__, None) is old:
            setattr(module, old.__name__, new)


def of(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["type"] == kind]


def items(events: list[Event], kind: str) -> Iterable[Event]:
    """Every copy of the items of one type, wherever an event carries one."""
    for event in events:
        found = [event["item"]] if "item" in event else event.get("response", {}).get("output", [])
        yield from (item for item in found if item["type"] == kind)


# -- streams -------------------------------------------------------------------------------------------------------------------


@stream
def no_created(events: list[Event]) -> Iterable[Event]:
    """Leaves `response.created` out."""
    return events[1:]


@stream
def created_twice(events: list[Event]) -> Iterable[Event]:
    """Says `response.created` again before it ends."""
    return [*events[:-1], copy.deepcopy(events[0]), events[-1]]


@stream
def no_in_progress(events: list[Event]) -> Iterable[Event]:
    """Leaves `response.in_progress` out."""
    return [event for event in events if event["type"] != "response.in_progress"]


@stream
def created_as_completed(events: list[Event]) -> Iterable[Event]:
    """Says in `response.created` that all is done."""
    events[0]["response"]["status"] = "completed"
    return events


@stream
def no_completed(events: list[Event]) -> Iterable[Event]:
    """Leaves `response.completed` out."""
    return [event for event in events if event["type"] != "response.completed"]


@stream
def event_after_completed(events: list[Event]) -> Iterable[Event]:
    """Says something after `response.completed`."""
    return [*events, copy.deepcopy(events[1])]


@stream
def completed_in_progress(events: list[Event]) -> Iterable[Event]:
    """Ends with a response that is still in progress."""
    for event in of(events, "response.completed"):
        event["response"]["status"] = "in_progress"
    return events


@stream
def completed_without_id(events: list[Event]) -> Iterable[Event]:
    """Ends with a response that has no id."""
    for event in of(events, "response.completed"):
        del event["response"]["id"]
    return events


@stream
def another_id_at_the_end(events: list[Event]) -> Iterable[Event]:
    """Ends with a response of another id."""
    for event in of(events, "response.completed"):
        event["response"]["id"] += "x"
    return events


@stream
def completed_without_output(events: list[Event]) -> Iterable[Event]:
    """Ends with a response whose output is empty."""
    for event in of(events, "response.completed"):
        event["response"]["output"] = []
    return events


@stream
def wrong_total(events: list[Event]) -> Iterable[Event]:
    """Miscounts the tokens."""
    for event in of(events, "response.completed"):
        event["response"]["usage"]["total_tokens"] += 1
    return events


@stream
def added_with_something(events: list[Event]) -> Iterable[Event]:
    """Adds items and parts with something in them, and says it once more in deltas."""
    for event in events:
        for name in ("text", "refusal"):
            if event["type"].endswith("_part.added") and name in event["part"]:
                event["part"][name] = "x"
        for name in ("arguments", "input"):
            if event["type"] == "response.output_item.added" and name in event["item"]:
                event["item"][name] = "x"
    return events


@stream
def parts_from_one(events: list[Event]) -> Iterable[Event]:
    """Counts the parts of an item from 1."""
    return [{**event, "content_index": event["content_index"] + 1} if "content_index" in event else event for event in events]


@stream
def another_model_at_the_end(events: list[Event]) -> Iterable[Event]:
    """Ends with a response of another version of the model."""
    events[-1]["response"]["model"] += "-2"
    return events


@stream
def another_model(events: list[Event]) -> Iterable[Event]:
    """Says that another model answered."""
    for event in events:
        if "response" in event:
            event["response"]["model"] = "gpt-3"
    return events


@stream
def numbers_from_one(events: list[Event]) -> Iterable[Event]:
    """Counts events from 1."""
    for event in events:
        event["sequence_number"] += 1
    return events


@stream
def no_added(events: list[Event]) -> Iterable[Event]:
    """Leaves `response.output_item.added` out."""
    return [event for event in events if event["type"] != "response.output_item.added"]


@stream
def part_before_item(events: list[Event]) -> Iterable[Event]:
    """Adds the part before its item."""
    found = list(events)
    for i, event in enumerate(found[:-1]):
        if event["type"] == "response.output_item.added" and found[i + 1]["type"] == "response.content_part.added":
            found[i], found[i + 1] = found[i + 1], found[i]
    return found


@stream
def loses_a_delta(events: list[Event]) -> Iterable[Event]:
    """Loses the first delta of each text."""
    first = next((event for event in events if event["type"].endswith("text.delta")), None)
    return [event for event in events if event is not first]


@stream
def loses_a_custom_delta(events: list[Event]) -> Iterable[Event]:
    """Loses the first delta of a freeform input."""
    first = next((event for event in events if event["type"] == "response.custom_tool_call_input.delta"), None)
    return [event for event in events if event is not first]


@stream
def items_never_done(events: list[Event]) -> Iterable[Event]:
    """Leaves `response.output_item.done` out of messages."""
    return [event for event in events if event["type"] != "response.output_item.done" or event["item"]["type"] != "message"]


@stream
def deltas_of_another_item(events: list[Event]) -> Iterable[Event]:
    """Names another item in its deltas."""
    for event in of(events, "response.output_text.delta"):
        event["item_id"] = "msg_other"
    return events


@stream
def one_id_for_all(events: list[Event]) -> Iterable[Event]:
    """Gives every response the same id."""
    for event in events:
        if "response" in event:
            event["response"]["id"] = "resp_1"
    return events


@stream
def call_added_with_its_arguments(events: list[Event]) -> Iterable[Event]:
    """Adds a call with its arguments in it."""
    for event in of(events, "response.output_item.added"):
        if event["item"]["type"] == "function_call":
            event["item"]["arguments"] = '{"a":1,"b":1}'
    return events


@stream
def loses_a_piece_of_the_arguments(events: list[Event]) -> Iterable[Event]:
    """Loses the first delta of a call's arguments."""
    first = next((event for event in events if event["type"] == "response.function_call_arguments.delta"), None)
    return [event for event in events if event is not first]


@stream
def keeps_one_piece_of_the_arguments(events: list[Event]) -> Iterable[Event]:
    """Sends the first delta of a call's arguments and no other."""
    deltas = [event for event in events if event["type"] == "response.function_call_arguments.delta"]
    return [event for event in events if event not in deltas[1:]]


@stream
def call_done_under_another_id(events: list[Event]) -> Iterable[Event]:
    """Finishes a call under another call id than it was added with."""
    for event in of(events, "response.output_item.done"):
        if event["item"]["type"] == "function_call":
            event["item"]["call_id"] += "x"
    return events


@stream
def call_without_call_id(events: list[Event]) -> Iterable[Event]:
    """Says no call id when a call is done."""
    for event in of(events, "response.output_item.done"):
        event["item"].pop("call_id", None)
    return events


@stream
def one_call_id_for_all(events: list[Event]) -> Iterable[Event]:
    """Gives parallel calls the same call id."""
    for item in items(events, "function_call"):
        item["call_id"] = "call_same"
    return events


@stream
def arguments_of_the_last(events: list[Event]) -> Iterable[Event]:
    """Gives parallel calls the arguments of the first."""
    found = [item["arguments"] for item in items(events, "function_call") if item["arguments"]]
    for item in items(events, "function_call"):
        if item["arguments"]:
            item["arguments"] = found[0]
    return events


@stream
def search_added_late(events: list[Event]) -> Iterable[Event]:
    """Adds a search after its own events."""
    late = [e for e in of(events, "response.output_item.added") if e["item"]["type"] == "web_search_call"]
    for event in events:
        if event in late:
            continue
        if event["type"] == "response.output_item.done" and late:
            yield late.pop(0)
        yield event


@stream
def search_without_searching(events: list[Event]) -> Iterable[Event]:
    """Leaves `searching` out."""
    return [event for event in events if event["type"] != "response.web_search_call.searching"]


@stream
def search_without_action(events: list[Event]) -> Iterable[Event]:
    """Finishes a search without its action."""
    for event in of(events, "response.output_item.done"):
        event["item"].pop("action", None)
    return events


@stream
def an_odd_key(events: list[Event]) -> Iterable[Event]:
    """Adds a key that no type has to every event."""
    return [{**event, "odd": 1} for event in events]


@stream
def no_summary(events: list[Event]) -> Iterable[Event]:
    """Forgets the summaries of its reasoning."""
    for item in items(events, "reasoning"):
        item["summary"] = []
    return events


@stream
def failed_without_code(events: list[Event]) -> Iterable[Event]:
    """Says that it failed and not why."""
    for event in of(events, "response.failed"):
        event["response"]["error"] = None
    return events


@stream
def incomplete_as_completed(events: list[Event]) -> Iterable[Event]:
    """Calls an incomplete response completed."""
    for event in of(events, "response.incomplete"):
        event["type"] = "response.completed"
        event["response"]["status"] = "completed"
    return events


def written(change: Callable[[bytes], bytes]) -> None:
    """Change the bytes of every event."""
    old = steps.event_bytes
    _replace_everywhere(old, lambda *given, **more: change(old(*given, **more)))


@variant
def events_without_names() -> None:
    """Writes data lines only."""
    written(lambda data: data.partition(b"\n")[2])


@variant
def last_event_unended() -> None:
    """Leaves out the blank line after the last event."""
    written(lambda data: data[:-1] if b'"response.completed"' in data[:60] else data)


@variant
def ascii_only() -> None:
    """Loses every character that is not ASCII."""
    written(lambda data: data.decode().encode("ascii", "replace"))


@variant
def normalised_events() -> None:
    """Writes text in a normal form of Unicode."""
    written(lambda data: unicodedata.normalize("NFKC", data.decode()).encode())


# -- everything else: `server` gives the modules of the backend, once the above is done ------------------------------------------


MODULES = {
    "answers": "backend.answers",
    "auth": "backend.rules.auth",
    "bodies": "backend.bodies",
    "body": "backend.rules.body",
    "default": "model.default",
    "exchange": "backend.exchange",
    "play": "backend.play",
    "routes": "backend.routes",
    "server": "backend.server",
    "state": "backend.state.answers",
    "stored": "backend.state.stored",
    "table": "backend.rules.table",
    "tokens": "backend.rules.tokens",
    "channel": "backend.websocket.channel",
    "handshake": "backend.websocket.handshake",
    "messages": "backend.websocket.exchange",
}


class _Modules:
    """The backend's modules, imported when a variant first needs one."""

    def __getattr__(self, name: str) -> Any:
        import importlib

        return importlib.import_module(f"codex_fakes.{MODULES[name]}")


server = _Modules()


def _rule(name: str) -> None:
    def drop() -> None:
        server.table.RULES = tuple(rule for rule in server.table.RULES if rule.id != name)
        left = tuple(rule for rule in server.table.AUTH_RULES if rule.id != name)
        server.table.AUTH_RULES = server.routes.AUTH_RULES = server.handshake.AUTH_RULES = left

    drop.__doc__ = f"Does not enforce the rule {name}."
    VARIANTS[f"rule-{name}"] = drop


for _name in (
    *(
        "bearer-missing",
        "bearer-expired",
        "bearer-revoked",
        "bearer-wrong",
        "account-missing",
        "account-wrong",
        "account-under-key",
    ),
    *(
        "originator-missing",
        "user-agent-missing",
        "session-id",
        "model-missing",
        "input-missing",
        "type",
        "unknown-parameter",
        "previous-response",
    ),
    *("store-false", "stream-true", "tool-type", "tool-name", "tool-choice", "item-type", "item-fields", "message-content"),
    *("output-without-call", "call-without-output"),
):
    _rule(_name)


def _lenient_json(accepts: Callable[[Any], bool]) -> None:
    """Take what is no request for an empty greeting."""
    find = server.body.not_json

    def not_json(asked: Any) -> Any:
        try:
            value: Any = json.loads(asked.data)
        except ValueError:
            value = ...
        if isinstance(value, dict) or not accepts(value):
            return find(asked)
        asked.data = b'{"model":"m","input":"hi","stream":true,"store":false}'
        return find(asked)

    _replace("json", not_json)


def _replace(name: str, find: Callable[[Any], Any]) -> None:
    server.table.RULES = tuple(rule.but(find=find) if rule.id == name else rule for rule in server.table.RULES)


@variant
def rule_json() -> None:
    """Takes a body that is not JSON for an empty one."""
    _lenient_json(lambda value: value is ...)


@variant
def rule_object() -> None:
    """Takes JSON that is no object for an empty one."""
    _lenient_json(lambda value: value is not ...)


@variant
def no_session_header() -> None:
    """Does not miss the session, but wants a uuid where there is one."""
    find = server.auth.session_id
    _replace("session-id", lambda asked: find(asked) if asked.header("session_id") else None)


@variant
def any_session() -> None:
    """Takes any word for a session."""
    find = server.auth.session_id
    _replace("session-id", lambda asked: None if asked.header("session_id") else find(asked))


@variant
def one_originator() -> None:
    """Serves nobody but codex_cli_rs."""
    find = server.auth.originator_missing
    message = ("originator", "Who are you?")
    _replace("originator-missing", lambda asked: message if asked.header("originator") == "my_client" else find(asked))


@variant
def basic_auth() -> None:
    """Takes any scheme for a bearer."""
    _replace("bearer-missing", lambda asked: None if asked.header("authorization") else ("authorization", "Log in."))


@variant
def headers_by_case() -> None:
    """Knows headers in lower case only."""
    server.exchange.Request.header = lambda self, name: dict(self.headers).get(name)


@variant
def no_api_keys() -> None:
    """Knows no API keys."""
    Tokens = server.tokens.Tokens  # noqa: N806
    old = Tokens.check_bearer
    Tokens.check_bearer = lambda self, bearer, mode: "wrong" if mode == "api_key" else old(self, bearer, mode)


@variant
def no_chatgpt() -> None:
    """Knows no access tokens."""
    Tokens = server.tokens.Tokens  # noqa: N806
    old = Tokens.check_bearer
    Tokens.check_bearer = lambda self, bearer, mode: "wrong" if mode == "chatgpt" else old(self, bearer, mode)


@variant
def any_key() -> None:
    """Takes any API key."""
    Tokens = server.tokens.Tokens  # noqa: N806
    old = Tokens.check_bearer
    Tokens.check_bearer = lambda self, bearer, mode: None if mode == "api_key" else old(self, bearer, mode)


@variant
def errors_as_detail() -> None:
    """Says what is wrong as {"detail": ...}."""
    server.table.Violation.body = lambda self: json.dumps({"detail": self.message}).encode()


@variant
def errors_without_code() -> None:
    """Leaves the code out of errors."""
    server.table.Violation.body = lambda self: json.dumps(
        {"error": {"message": self.message, "type": "x", "param": self.param}}
    ).encode()


@variant
def silent_errors() -> None:
    """Refuses without a word."""
    server.table.Violation.body = lambda self: json.dumps(
        {"error": {"message": "", "type": "x", "param": self.param, "code": self.code}}
    ).encode()


@variant
def vague_errors() -> None:
    """Refuses with the same words whatever is wrong."""
    server.table.Violation.body = lambda self: json.dumps(
        {"error": {"message": "Bad request.", "type": "x", "param": None, "code": self.code}}
    ).encode()


@variant
def errors_as_text() -> None:
    """Gives errors the wrong content type."""
    server.answers.JSON_TYPE = server.play.JSON_TYPE = ("content-type", "text/plain")


@variant
def plain_content_type() -> None:
    """Gives streams the wrong content type."""
    server.play.STREAM_TYPE = ("content-type", "text/plain")


@variant
def no_gzip() -> None:
    """Cannot read compressed bodies."""
    old = server.bodies.decode
    server.bodies.decode = lambda raw, encoding, limit: raw if encoding == "gzip" else old(raw, encoding, limit)


@variant
def no_zstd() -> None:
    """Cannot read bodies that Codex compresses."""
    old = server.bodies.decode
    server.bodies.decode = lambda raw, encoding, limit: raw if encoding == "zstd" else old(raw, encoding, limit)


@variant
def short_bodies() -> None:
    """Refuses a body of more than 100,000 bytes, the default limit of a framework."""
    find = server.body.model_missing
    long = ("input", "The body is too long.")
    _replace("model-missing", lambda asked: find(asked) or (long if len(json.dumps(asked.body)) > 100_000 else None))


def _handed_on(change: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    """Change the body and the headers that the model gets."""
    old = server.routes.mismatch

    def mismatch(expect: Any, body: Any, headers: Any, *more: Any) -> Any:
        return old(expect, *change(body, headers), *more)

    server.routes.mismatch = mismatch


@variant
def normalised_text() -> None:
    """Hands on the text of a request in a normal form of Unicode."""
    _handed_on(lambda body, headers: (json.loads(unicodedata.normalize("NFC", json.dumps(body, ensure_ascii=False))), headers))


@variant
def nulls_left_out() -> None:
    """Hands on a request without its members that are null."""
    _handed_on(lambda body, headers: (_without_nulls(body), headers))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


@variant
def known_headers_only() -> None:
    """Hands on only the headers that it knows."""
    known = ("authorization", "chatgpt-account-id", "originator", "user-agent", "session_id")
    _handed_on(lambda body, headers: (body, [pair for pair in headers if pair[0].lower() in known]))


@variant
def buffered_streams() -> None:
    """Sends a stream when it has ended."""
    Exchange = server.exchange.Exchange  # noqa: N806
    write, end = Exchange.write, Exchange.end

    def kept(self: Any, pieces: Iterable[bytes]) -> None:
        self.kept = [*getattr(self, "kept", []), *pieces]

    def sent(self: Any) -> None:
        if pieces := self.__dict__.pop("kept", []):
            write(self, pieces)
        end(self)

    Exchange.write, Exchange.end = kept, sent


@variant
def one_stream_at_a_time() -> None:
    """Refuses a request while it answers another one."""
    old = server.play.play
    busy: list[int] = []

    async def play(exchange: Any, *given: Any) -> None:
        if busy:
            exchange.respond(503, [], b'{"error": {"message": "Busy.", "type": "server_error", "param": null, "code": null}}')
            return
        busy.append(1)
        try:
            await old(exchange, *given)
        finally:
            busy.pop()

    _replace_everywhere(old, play)


def _without_header(name: str) -> None:
    Exchange = server.exchange.Exchange  # noqa: N806
    old = Exchange._head
    Exchange._head = lambda self, status, headers: old(self, status, [pair for pair in headers if pair[0].lower() != name])


@variant
def no_turn_state() -> None:
    """Drops the state of a turn from its answers."""
    _without_header("x-codex-turn-state")


@variant
def no_retry_after() -> None:
    """Drops `retry-after` from its answers, over a WebSocket with all other headers of an error."""
    _without_header("retry-after")
    WebSocketExchange = server.messages.WebSocketExchange  # noqa: N806
    old = WebSocketExchange.respond
    WebSocketExchange.respond = lambda self, status, headers, body: old(self, status, [], body)


@variant
def all_failures_are_502() -> None:
    """Answers 502 in place of any failure of the service."""
    Exchange = server.exchange.Exchange  # noqa: N806
    old = Exchange.respond
    Exchange.respond = lambda self, status, *given: old(self, 502 if status >= 500 else status, *given)


@variant
def wants_everything() -> None:
    """Wants every key of the example."""
    find = server.body.model_missing
    _replace("model-missing", lambda asked: find(asked) or (None if "tools" in asked.body else ("tools", "There must be tools.")))


@variant
def wants_reasoning() -> None:
    """Cannot do without reasoning."""
    find = server.body.model_missing
    _replace(
        "model-missing", lambda asked: find(asked) or (("reasoning", "No.") if asked.body.get("reasoning", 1) is None else None)
    )


@variant
def no_output_schema() -> None:
    """Does not know structured output."""
    find = server.body.model_missing
    _replace(
        "model-missing", lambda asked: find(asked) or (("text", "No.") if "format" in (asked.body.get("text") or {}) else None)
    )


@variant
def long_parts_only() -> None:
    """Does not know the short form of a message."""
    find = server.body.message_content
    short = ("input[0].content", "content must be a list.")
    _replace(
        "message-content",
        lambda asked: (
            find(asked) or next((short for i in asked.items if isinstance(i, dict) and isinstance(i.get("content"), str)), None)
        ),
    )


def _without_tool(kind: str) -> None:
    def drop() -> None:
        server.body.TOOL_TYPES.remove(kind)

    drop.__doc__ = f"Does not know tools of the type {kind}."
    VARIANTS[f"no-{kind.replace('_', '-')}-tool"] = drop


for _kind in ("function", "web_search", "custom"):
    _without_tool(_kind)


@variant
def objects_as_arguments() -> None:
    """Takes an object for arguments."""
    server.body.ITEM_FIELDS["function_call"] = {"call_id": (str,), "name": (str,), "arguments": (str, dict)}


@variant
def arguments_are_checked() -> None:
    """Refuses arguments that are no JSON."""
    find = server.body.item_fields

    def fields(asked: Any) -> Any:
        for _, item, _ in asked.calls:
            try:
                json.loads(item.get("arguments", "0"))
            except (ValueError, TypeError):
                return "input", "The arguments are no JSON."
        return find(asked)

    _replace("item-fields", fields)


@variant
def schemas_are_checked() -> None:
    """Refuses a tool whose schema is none."""
    find = server.body.tool_name

    def name(asked: Any) -> Any:
        wrong = [tool for tool in asked.body.get("tools") or () if not server.default.valid_schema(tool)]
        return ("tools", "This is no schema.") if wrong else find(asked)

    _replace("tool-name", name)


@variant
def schemas_are_ignored() -> None:
    """Calls tools whatever their schema."""
    server.default.valid_schema = lambda tool: True


@variant
def calls_by_place() -> None:
    """Takes outputs for those of the calls in their order, whatever their call id."""
    _replace("output-without-call", _in_order)


def _in_order(asked: Any) -> Any:
    calls = [item["call_id"] for _, item, _ in asked.calls if not item["type"].endswith("_output")]
    outputs = [item["call_id"] for _, item, _ in asked.calls if item["type"].endswith("_output")]
    return None if calls == outputs or len(calls) > len(outputs) else ("input", f"{outputs} is not {calls}")


@variant
def any_call_will_do() -> None:
    """Takes an output where any call of its type stands, and a call where any output does."""
    _replace("output-without-call", _any_call)


def _any_call(asked: Any) -> Any:
    given = [item["type"] for _, item, _ in asked.calls]
    alone = [kind for kind in given if kind.endswith("_output") and kind.removesuffix("_output") not in given]
    return ("input", f"There is no call for {alone}.") if alone else None


@variant
def calls_before_outputs() -> None:
    """Refuses a call behind an output: it knows one round alone."""
    find = server.body.item_fields

    def fields(asked: Any) -> Any:
        outputs = [item["type"].endswith("_output") for _, item, _ in asked.calls]
        return ("input", "A call stands behind an output.") if outputs != sorted(outputs) else find(asked)

    _replace("item-fields", fields)


@variant
def arguments_begin_with_a_brace() -> None:
    """Refuses arguments that cannot be an object."""
    find = server.body.item_fields

    def fields(asked: Any) -> Any:
        odd = [item for _, item, _ in asked.calls if not str(item.get("arguments", "{")).startswith("{")]
        return ("input", "The arguments are no object.") if odd else find(asked)

    _replace("item-fields", fields)


@variant
def custom_outputs_go_free() -> None:
    """Does not look for the calls of freeform tools."""
    server.body.CALL_OF.pop("custom_tool_call_output")


@variant
def small_outputs() -> None:
    """Takes outputs of 10,000 characters at most."""
    find = server.body.item_fields
    long = ("input", "The output is too long.")
    _replace(
        "item-fields",
        lambda asked: find(asked) or next((long for _, i, _ in asked.calls if len(str(i.get("output", ""))) > 10_000), None),
    )


@variant
def tools_are_needed() -> None:
    """Refuses to be asked for a call where there are no tools."""
    find = server.body.tool_name
    _replace(
        "tool-name",
        lambda asked: find(asked) or (None if asked.body.get("tools") or "Call" not in str(asked.body) else ("tools", "None.")),
    )


@variant
def calls_what_is_not_there() -> None:
    """Calls a function that nobody declared."""
    from codex_replay.protocol.script.script import Turn

    old = server.default.default_turn
    call = {"type": "function_call", "name": "add", "arguments": {}}
    server.routes.default_turn = lambda body: old(body) if body.get("tools") or "Call" not in str(body) else Turn(items=(call,))


@variant
def deaf_to_outputs() -> None:
    """Does not see what tools say."""
    server.default.REPEATED = 0


@variant
def deaf_to_custom_outputs() -> None:
    """Does not see what freeform tools say."""
    old = server.routes.default_turn

    def default(body: Any) -> Any:
        given = (
            [i for i in body["input"] if i.get("type") != "custom_tool_call_output"] if isinstance(body["input"], list) else []
        )
        return old({**body, "input": given})

    server.routes.default_turn = default


@variant
def no_encrypted_content() -> None:
    """Forgets the encrypted content of reasoning."""
    old = responses._ITEMS["reasoning"]
    responses._ITEMS["reasoning"] = lambda reply, item, index: old(
        reply, {key: value for key, value in item.items() if key != "encrypted_content"}, index
    )


# the token URL


def _tokens(change: Callable[[Any, str, Any], Any]) -> None:
    Tokens = server.tokens.Tokens  # noqa: N806
    old = Tokens.use_refresh
    Tokens.use_refresh = lambda self, token: change(self, token, lambda: old(self, token))


@variant
def refresh_without_id_token() -> None:
    """Gives no id token."""
    _tokens(lambda self, token, old: {k: v for k, v in got.items() if k != "id_token"} if isinstance(got := old(), dict) else got)


@variant
def id_token_that_is_none() -> None:
    """Gives an id token that is no JWT."""
    server.tokens.Tokens.id_token = lambda self: "id-token"


@variant
def id_token_of_another() -> None:
    """Gives an id token of another account."""
    Tokens = server.tokens.Tokens  # noqa: N806
    old = Tokens.id_token

    def other(self: Any) -> Any:
        self.account_id, kept = "account-9", self.account_id
        try:
            return old(self)
        finally:
            self.account_id = kept

    Tokens.id_token = other


@variant
def id_token_without_user() -> None:
    """Gives an id token that names no user."""
    server.tokens.Tokens.user_id = property(lambda self: None, lambda self, value: None)


@variant
def id_token_of_another_user() -> None:
    """Gives each id token another user."""
    users = count(1)
    server.tokens.Tokens.user_id = property(lambda self: f"user-{next(users)}", lambda self, value: None)


@variant
def refresh_does_nothing() -> None:
    """Gives tokens that are not good."""
    _tokens(lambda self, token, old: {**got, "access_token": "not-good"} if isinstance(got := old(), dict) else got)


@variant
def old_tokens_stay_good() -> None:
    """Lets the old access token live on."""

    def keep(self: Any, token: str, old: Callable[[], Any]) -> Any:
        before = dict(self._access)
        got = old()
        self._access = {**self._access, **before}
        return got

    _tokens(keep)


@variant
def refresh_tokens_stay_good() -> None:
    """Takes a refresh token again and again."""

    def keep(self: Any, token: str, old: Callable[[], Any]) -> Any:
        self.rotate = False
        return old()

    _tokens(keep)


@variant
def reuse_is_not_told_apart() -> None:
    """Says of a used refresh token that it is unknown."""
    server.tokens.REFRESH_ERRORS["reused"] = server.tokens.REFRESH_ERRORS["unknown"]


@variant
def expiry_is_not_told_apart() -> None:
    """Says of an expired refresh token that it is unknown."""
    server.tokens.REFRESH_ERRORS["expired"] = server.tokens.REFRESH_ERRORS["unknown"]


@variant
def revocation_is_not_told_apart() -> None:
    """Says of a revoked refresh token that it is unknown."""
    server.tokens.REFRESH_ERRORS["revoked"] = server.tokens.REFRESH_ERRORS["unknown"]


@variant
def unknown_is_expired() -> None:
    """Says of any refresh token that it has expired."""
    server.tokens.REFRESH_ERRORS["unknown"] = server.tokens.REFRESH_ERRORS["expired"]


def _token_route(change: Callable[[Any], Any]) -> None:
    """Change the fields that the token URL reads."""
    old = server.routes._token

    async def route(exchange: Any, session: Any, entry: Any, path: str, query: str) -> None:
        try:
            fields = json.loads(entry.body)
        except ValueError:
            fields = None
        if (changed := change(fields)) is not None:
            entry.body = json.dumps(changed).encode()
            exchange.request.headers = [("content-type", "application/json")]
        await old(exchange, session, entry, path, query)

    _routed("/oauth/token", route)


def _routed(ending: str, handler: Any) -> None:
    server.routes.ROUTES = tuple((method, end, handler if end == ending else old) for method, end, old in server.routes.ROUTES)


@variant
def any_grant() -> None:
    """Refreshes whatever grant is asked."""
    _token_route(lambda fields: {**fields, "grant_type": "refresh_token"} if isinstance(fields, dict) else None)


@variant
def refresh_without_token() -> None:
    """Refreshes for one who says no refresh token."""
    _token_route(lambda fields: {"refresh_token": "refresh-1", **fields} if isinstance(fields, dict) else None)


@variant
def any_client() -> None:
    """Refreshes for a client that is not Codex."""
    client = {"client_id": "app_EMoamEEZ73f0CkXaXp7hrann"}
    _token_route(lambda fields: {**fields, **client} if isinstance(fields, dict) and fields.get("client_id") else None)


@variant
def no_client() -> None:
    """Refreshes for a client that does not say who it is."""
    client = {"client_id": "app_EMoamEEZ73f0CkXaXp7hrann"}
    _token_route(lambda fields: {**fields, **client} if isinstance(fields, dict) and not fields.get("client_id") else None)


@variant
def any_scope() -> None:
    """Refreshes whatever scope is asked for."""
    scope = {"scope": "openid profile email"}
    _token_route(lambda fields: {**fields, **scope} if isinstance(fields, dict) and "scope" in fields else None)


@variant
def scope_required() -> None:
    """Refuses a refresh without a scope."""
    _token_route(lambda fields: {"scope": "", **fields} if isinstance(fields, dict) else None)


@variant
def headers_of_chatgpt_only() -> None:
    """Requires originator, user agent and session of ChatGPT logins only."""
    old = server.auth._codex_headers
    server.auth._codex_headers = lambda asked: asked.mode == "chatgpt" and old(asked)


@variant
def formats_have_names() -> None:
    """Refuses a format without a name."""

    old = server.body.tool_type

    def find(asked: Any) -> Any:
        given = (asked.body.get("text") or {}).get("format") or {"name": ""}
        return old(asked) or (None if "name" in given else ("text.format.name", "Name the format."))

    _replace("tool-type", find)


@variant
def no_forms() -> None:
    """Does not read forms."""
    _token_route(lambda fields: {} if fields is None else None)


# other routes


@variant
def any_method() -> None:
    """Takes any method for POST."""
    old = server.routes._route

    async def route(exchange: Any, *given: Any) -> None:
        if exchange.request.method == "PUT":
            exchange.request.method = "POST"
        await old(exchange, *given)

    server.routes._route = route


@variant
def any_path() -> None:
    """Serves responses at any path that begins alike."""
    server.routes.ROUTES += (("POST", "/respond", server.routes._responses),)


@variant
def deaf_to_upgrades() -> None:
    """Does not see that a WebSocket is asked for."""
    old = server.routes._route

    async def route(exchange: Any, *given: Any) -> None:
        exchange.request.upgrade = False
        await old(exchange, *given)

    server.routes._route = route


def _json_answers(ending: str, change: Callable[[Any], Any], headers: bool = True) -> None:
    """Change the JSON that a route answers."""
    old = server.routes.respond_json

    def respond(exchange: Any, entry: Any, status: int, value: Any, *more: Any) -> None:
        if entry.request.target.partition("?")[0].endswith(ending):
            value, more = change(value), more if headers else ()
        old(exchange, entry, status, value, *more)

    server.routes.respond_json = server.routes.account.respond_json = respond


@variant
def models_without_models() -> None:
    """Lists models for SDKs only."""
    _json_answers("/models", lambda value: {key: inner for key, inner in value.items() if key != "models"})


@variant
def models_without_data() -> None:
    """Lists models for Codex only."""
    _json_answers("/models", lambda value: {"models": value["models"]})


@variant
def models_without_etag() -> None:
    """Gives the models no tag."""
    _json_answers("/models", lambda value: value, headers=False)


@variant
def models_never_change() -> None:
    """Answers 304 whatever tag is asked for."""
    old = server.routes._models

    async def models(exchange: Any, session: Any, entry: Any, path: str, query: str) -> None:
        if exchange.request.header("if-none-match"):
            entry.answer, entry.status = "route", 304
            exchange.respond(304, [], b"")
            return
        await old(exchange, session, entry, path, query)

    _routed("/models", models)


@variant
def usage_without_window() -> None:
    """Tells the plan only."""
    _json_answers("/wham/usage", lambda value: {**value, "rate_limit": None})


@variant
def usage_for_all() -> None:
    """Tells anyone the usage, the workspaces and the credits."""
    server.routes.account.AUTH_RULES = ()


def _workspaces(change: Callable[[Any], Any]) -> None:
    """Change the workspaces that an account has."""
    _json_answers("/wham/accounts/check", lambda value: {**value, "accounts": [change(each) for each in value["accounts"]]})


@variant
def no_workspaces() -> None:
    """Lists no workspace."""
    _json_answers("/wham/accounts/check", lambda value: {**value, "accounts": []})


@variant
def workspace_without_origin() -> None:
    """Says nowhere who serves a workspace."""
    _workspaces(lambda account: {**account, "workspace_backend_origin": None})


@variant
def workspace_over_http() -> None:
    """Names an origin without TLS."""
    _workspaces(lambda account: {**account, "workspace_backend_origin": "http://127.0.0.1"})


@variant
def workspace_of_another() -> None:
    """Names the workspace of another account."""
    _workspaces(lambda account: {**account, "id": "account-9"})


@variant
def workspace_without_routing() -> None:
    """Gives a routing that no version knows."""
    _workspaces(lambda account: {**account, "account_routing_override": ""})


@variant
def no_user_settings() -> None:
    """Has no settings of a user."""
    _json_answers("/wham/settings/user", lambda value: {})


@variant
def no_reset_credits() -> None:
    """Does not list the credits that reset the rate limits."""
    _json_answers("/wham/rate-limit-reset-credits", lambda value: {"available_count": value["available_count"]})


# what a response repeats of its request


def echo(change: Callable[[Event, Event], Event]) -> Callable[[Event, Event], Event]:
    """Enter a change of what a response repeats into the table: from the settings and the body of the request."""

    def patch() -> None:
        old = settings.settings
        settings.settings = lambda body: change(old(body), dict(body))

    patch.__doc__ = change.__doc__
    VARIANTS[change.__name__.replace("_", "-")] = patch
    return change


@echo
def echoes_defaults(found: Event, body: Event) -> Event:
    """Has the default of every setting, whatever the request says."""
    return {**settings.PLAIN, "tools": [], "text": {}, "reasoning": {"effort": None}}


@echo
def echoes_what_is_given(found: Event, body: Event) -> Event:
    """Leaves the defaults out."""
    return {name: value for name, value in found.items() if name in body}


@echo
def defaults_are_null(found: Event, body: Event) -> Event:
    """Has null for what the request leaves out, and text for null."""
    return {name: value if name in body else None if value is not None else "" for name, value in found.items()}


@echo
def completed_at_the_start(found: Event, body: Event) -> Event:
    """Has the time of its end before it ends."""
    return {**found, "completed_at": 1}


@stream
def echoes_at_the_start_only(events: list[Event]) -> Iterable[Event]:
    """Forgets the settings at the end of the stream."""
    for name in settings.READ:
        events[-1].get("response", {}).pop(name, None)
    return events


# what is kept


def _stored(change: Callable[..., bool]) -> Callable[..., bool]:
    """Enter a handler of requests about a stored response into the table: it returns False to leave the request to the fake."""

    def patch() -> None:
        old = server.state._response

        def respond(*given: Any) -> None:
            if not change(*given):
                old(*given)

        server.state._response = respond

    patch.__doc__ = change.__doc__
    VARIANTS[change.__name__.replace("_", "-")] = patch
    return change


@variant
def forgets_responses() -> None:
    """Stores no response."""
    server.stored.Responses.get = lambda self, id_: None


@variant
def stores_everything() -> None:
    """Stores what must not be stored."""
    old = server.play.play

    async def play(exchange: Any, session: Any, entry: Any, turn: Any, label: str, body: Any) -> None:
        session.responses.keep(turn, entry.body, label)
        await old(exchange, session, entry, turn, label, body)

    _replace_everywhere(old, play)


@variant
def stores_no_streams() -> None:
    """Forgets a response that was streamed."""
    old = server.stored.Responses.get

    def get(self: Any, id_: str) -> Any:
        stored = old(self, id_)
        return None if stored is not None and stored.body.get("stream") else stored

    server.stored.Responses.get = get


@_stored
def deletes_nothing(exchange: Any, session: Any, entry: Any, stored: Any, id_: str, asked: Any, options: Any) -> bool:
    """Says that a response is deleted and keeps it."""
    if asked == ("DELETE", ""):
        server.state.respond_json(exchange, entry, 200, {"id": id_, "object": "response", "deleted": True})
        return True
    return False


@_stored
def cancels_anything(exchange: Any, session: Any, entry: Any, stored: Any, id_: str, asked: Any, options: Any) -> bool:
    """Cancels a response that is complete already."""
    if asked[1] == "/cancel" and stored.background is None:
        server.state.respond_json(exchange, entry, 200, {**stored.response(), "status": "cancelled"})
        return True
    return False


@_stored
def resumes_from_the_start(exchange: Any, session: Any, entry: Any, stored: Any, id_: str, asked: Any, options: Any) -> bool:
    """Does not read where a stream goes on."""
    options.pop("starting_after", None)
    return False


@variant
def cancels_nothing() -> None:
    """Does not cancel a response in the background."""
    server.stored.Stored.cancel = lambda self: None


@variant
def input_oldest_first() -> None:
    """Lists every page in the wrong order."""
    old = server.state.page
    server.state.page = lambda items, options: old(
        items, {**options, "order": "desc" if options.get("order") == "asc" else "asc"}
    )


@variant
def nothing_is_unknown() -> None:
    """Finds whatever it is asked for."""
    old = server.state.refuse

    def refuse(exchange: Any, entry: Any, violation: Any) -> None:
        if violation.status == 404:
            server.state.respond_json(exchange, entry, 200, {})
        else:
            old(exchange, entry, violation)

    server.state.refuse = refuse


@variant
def continues_anything() -> None:
    """Continues what it does not know."""
    server.state.lost = lambda session, body: None


@variant
def previous_without_code() -> None:
    """Refuses to continue an unknown response without the code of the error."""
    old = server.state.lost

    def lost(session: Any, body: Any) -> Any:
        found = old(session, body)
        return found and found.but(code=None)

    server.state.lost = lost


@variant
def forgets_calls() -> None:
    """Does not know the calls of the responses that a request continues."""
    server.stored.Responses.history = lambda self, body: []


@variant
def background_in_front() -> None:
    """Answers a request in the background when the response is complete."""
    old = server.play.play

    async def play(exchange: Any, session: Any, entry: Any, turn: Any, label: str, body: Any) -> None:
        await old(exchange, session, entry, turn, label, {**body, "background": False})

    _replace_everywhere(old, play)


@variant
def metadata_never_changes() -> None:
    """Does not update a conversation."""
    old = server.state._conversation

    def respond(exchange: Any, session: Any, entry: Any, conversation: Any, asked: Any, options: Any) -> None:
        if asked == ("POST", ""):
            server.state.respond_json(exchange, entry, 200, conversation.shown())
        else:
            old(exchange, session, entry, conversation, asked, options)

    server.state._conversation = respond


@variant
def turns_outside_conversations() -> None:
    """Adds no turn to its conversation."""
    server.state.converse = lambda *given: None


# -- the WebSocket -------------------------------------------------------------------------------------------------------------


def _message(change: Callable[[Any, dict[str, Any]], dict[str, Any]]) -> None:
    """Change every request on a WebSocket before it is judged; the change gets the channel and the message."""
    old = server.channel.Channel._create

    async def create(self: Any, exchange: Any, entry: Any, value: dict[str, Any]) -> None:
        await old(self, exchange, entry, change(self, value))

    server.channel.Channel._create = create


@variant
def prewarm_generates() -> None:
    """Answers a prewarm as any request."""
    _message(lambda channel, value: {key: each for key, each in value.items() if key != "generate"})


@variant
def prewarm_is_forgotten() -> None:
    """Does not let a prewarm be continued."""
    old = server.channel.Channel._prewarm

    async def prewarm(self: Any, exchange: Any, entry: Any, body: Any) -> None:
        await old(self, exchange, entry, body)
        self.increments.begin(None)

    server.channel.Channel._prewarm = prewarm


@variant
def increment_is_all() -> None:
    """Takes an increment for the whole conversation."""
    _message(lambda channel, value: {key: each for key, each in value.items() if key != "previous_response_id"})


@variant
def increments_without_rules() -> None:
    """Does not judge the outputs of an increment."""

    def change(channel: Any, value: dict[str, Any]) -> dict[str, Any]:
        if value.get("previous_response_id") is None:
            return value
        text = {"type": "message", "role": "user", "content": "an output"}
        return {**value, "input": [text if item.get("type") == "function_call_output" else item for item in value["input"]]}

    _message(change)


@variant
def full_request_continues() -> None:
    """Takes every request of a connection for an increment."""

    def change(channel: Any, value: dict[str, Any]) -> dict[str, Any]:
        return value if channel.increments.id is None else {"previous_response_id": channel.increments.id, **value}

    _message(change)


@variant
def any_response_is_continued() -> None:
    """Takes any id for that of a response that can be continued."""

    def change(channel: Any, value: dict[str, Any]) -> dict[str, Any]:
        known = value.get("previous_response_id") == channel.increments.id
        return value if known else {key: each for key, each in value.items() if key != "previous_response_id"}

    _message(change)


@variant
def error_closes() -> None:
    """Closes the WebSocket after an error."""
    old = server.messages.WebSocketExchange.respond

    def respond(self: Any, *given: Any) -> None:
        old(self, *given)
        self._channel.close(1011)

    server.messages.WebSocketExchange.respond = respond


@variant
def one_request_a_connection() -> None:
    """Closes the WebSocket after its first answer."""
    old = server.channel.Channel._request

    async def request(self: Any, data: bytes) -> None:
        await old(self, data)
        self.close(1000)

    server.channel.Channel._request = request


def _kinds(change: Callable[[Any, Any], Any]) -> None:
    """Change every message and control frame of the client; None drops it."""
    old = server.channel.Channel._feed

    def feed(self: Any, data: bytes) -> None:
        decoder = self._decoder.feed
        self._decoder.feed = lambda given: [found for each in decoder(given) if (found := change(self, each)) is not None]
        try:
            old(self, data)
        finally:
            self._decoder.feed = decoder

    server.channel.Channel._feed = feed


@variant
def no_pong() -> None:
    """Does not answer pings."""
    _kinds(lambda channel, message: None if message.kind == "ping" else message)


@variant
def pong_without_payload() -> None:
    """Answers a ping with an empty pong."""
    _kinds(lambda channel, message: message._replace(data=b"") if message.kind == "ping" else message)


@variant
def pong_after_the_response() -> None:
    """Answers no ping in the middle of a response."""
    old = server.channel.Channel._request

    async def request(self: Any, data: bytes) -> None:
        self.busy = True
        await old(self, data)
        self.busy = False

    server.channel.Channel._request = request
    _kinds(lambda channel, message: None if message.kind == "ping" and getattr(channel, "busy", False) else message)


@variant
def close_without_code() -> None:
    """Answers a close frame without its code."""
    _kinds(lambda channel, message: message._replace(data=b"") if message.kind == "close" else message)


@variant
def no_fragments() -> None:
    """Takes only the first frame of a message."""

    def first(channel: Any, message: Any) -> Any:
        return message._replace(data=message.data[: message.fragments[0]]) if message.fragments else message

    _kinds(first)


@variant
def compressed_without_offer() -> None:
    """Accepts a compression that was not offered."""
    server.handshake.offer_accepted = lambda headers: ("permessage-deflate", None)


@variant
def other_context() -> None:
    """Promises to compress each message on its own, and does not."""
    old = server.handshake.offer_accepted

    def accepted(headers: Any) -> Any:
        found = old(headers)
        return found and (f"{found[0]}; server_no_context_takeover", found[1])

    server.handshake.offer_accepted = accepted


@variant
def any_message_type() -> None:
    """Takes any object for a request."""

    async def judge(self: Any, exchange: Any, entry: Any, data: bytes) -> None:
        await self._create(exchange, entry, json.loads(data))

    server.channel.Channel._judge = judge


def main(argv: list[str]) -> int:
    """Run the variant that the first argument names."""
    if not argv or argv[0] not in VARIANTS:
        sys.stderr.write(f"Give one of these: {', '.join(VARIANTS)}.\n")
        return 2
    VARIANTS[argv[0]]()
    status: int = server.server.main(argv[1:])
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
