"""What of a conversation reaches the model (works-on-0.92): texts that are lost, outputs under the id of another call."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from codex_replay.reference.proxy import app
from codex_replay.reference.proxy.asking import normalise, payloads
from codex_replay.reference.proxy.errors import ProxyError
from tests.strength.proxy_variants.patching import after, put, variant


def in_asked(change: Callable[[Any], Any]) -> None:
    """Change what was understood of a request: `change(asked)` returns the new value."""
    after(app, "chat_request", lambda asked, *_: change(asked))
    after(app, "responses_request", lambda asked, *_: change(asked))


def in_outputs(change: Callable[[str, str, list[str]], tuple[str, str]]) -> None:
    """Change an output's call id and text: `change(call_id, output, ids)`, `ids` being those of the calls so far."""
    ids: list[str] = []
    call, output = normalise._call, normalise._output

    def called(name: Any, call_id: Any, arguments: Any, transcript: Any) -> None:
        if not transcript._lines or "[function_call" not in transcript._lines[-1]:
            ids.clear()
        ids.append(str(call_id))
        call(name, call_id, arguments, transcript)

    def returned(call_id: str, said: Any, where: str, transcript: Any) -> None:
        under, said = change(call_id, said, ids) if isinstance(said, str) else (call_id, said)
        output(under, said, where, transcript)

    normalise._call, normalise._output = called, returned


@variant
def system_texts_lost() -> None:
    in_asked(lambda asked: asked._replace(system=()))


@variant
def developer_texts_lost() -> None:
    def without(body: Any) -> Any:
        kept = {name: value for name, value in body.items() if name not in ("messages", "input")}
        for name in body.keys() & {"messages", "input"}:
            given = body[name]
            kept[name] = [m for m in given if m.get("role") != "developer"] if isinstance(given, list) else given
        return kept

    for name in ("chat_request", "responses_request"):
        old = getattr(app, name)
        setattr(app, name, lambda body, settings, old=old: old(without(body), settings))


@variant
def system_texts_are_the_users() -> None:
    def flat(body: Any) -> Any:
        changed = {name: value for name, value in body.items() if name != "instructions"}
        given = body.get("messages", body.get("input"))
        given = given if isinstance(given, list) else [{"role": "user", "content": given}]
        if body.get("instructions"):
            given = [{"role": "system", "content": body["instructions"]}, *given]
        roles = ("system", "developer")
        own = [{**m, "role": "user"} if isinstance(m, dict) and m.get("role") in roles else m for m in given]
        return changed | {"messages" if "messages" in body else "input": own}

    for name in ("chat_request", "responses_request"):
        old = getattr(app, name)
        setattr(app, name, lambda body, settings, old=old: old(flat(body), settings))


@variant
def system_texts_in_parts_lost() -> None:
    after(normalise, "_text_of", lambda found, content, where: "" if isinstance(content, list) else found)


@variant
def system_texts_of_chat_always_dropped() -> None:
    after(payloads, "base_instructions", lambda *_: None)


@variant
def instructions_lost() -> None:
    in_asked(lambda asked: asked._replace(instructions=None))


@variant
def instructions_lost_beside_system_items() -> None:
    in_asked(lambda asked: asked._replace(instructions=None) if asked.system else asked)


@variant
def instructions_replace_system_items() -> None:
    in_asked(lambda asked: asked._replace(system=()) if asked.instructions else asked)


@variant
def instructions_lost_beside_tools() -> None:
    in_asked(lambda asked: asked._replace(instructions=None) if asked.tools.definitions else asked)


@variant
def conversation_in_reverse() -> None:
    def change(asked: Any) -> Any:
        lines = re.split(r"\n(?=\[)", asked.items[0].value)
        return asked._replace(items=(asked.items[0]._replace(value="\n".join(reversed(lines))),))

    in_asked(change)


@variant
def the_last_message_lost() -> None:
    def change(asked: Any) -> Any:
        head, mark, _ = asked.items[-1].value.rpartition("\n[user] ")
        return asked._replace(items=(*asked.items[:-1], asked.items[-1]._replace(value=head))) if mark else asked

    in_asked(change)


@variant
def outputs_in_parts_lost() -> None:
    old = normalise._output

    def output(call_id: str, said: Any, where: str, transcript: Any) -> None:
        old(call_id, "" if isinstance(said, list) else said, where, transcript)

    normalise._output = output


@variant
def later_parts_of_outputs_lost() -> None:
    old = normalise._output

    def output(call_id: str, said: Any, where: str, transcript: Any) -> None:
        old(call_id, said[:1] if isinstance(said, list) else said, where, transcript)

    normalise._output = output


@variant
def texts_before_calls_lost() -> None:
    old = normalise._chat_message
    normalise._chat_message = lambda message, *more: old(
        {**message, "content": None} if message.get("tool_calls") else message, *more
    )


@variant
def outputs_under_the_first_id() -> None:
    in_outputs(lambda call_id, said, ids: (ids[0] if ids else call_id, said))


@variant
def outputs_under_the_last_id() -> None:
    in_outputs(lambda call_id, said, ids: (ids[-1] if ids else call_id, said))


@variant
def outputs_by_their_order() -> None:
    order: list[int] = []

    def change(call_id: str, said: str, ids: list[str]) -> tuple[str, str]:
        order.append(0)
        return ids[(len(order) - 1) % len(ids)] if ids else call_id, said

    in_outputs(change)


@variant
def outputs_without_ids() -> None:
    old = normalise._output

    def output(call_id: str, said: Any, where: str, transcript: Any) -> None:
        old(call_id, said, where, transcript)
        transcript._lines[-1] = transcript._lines[-1].replace(f" call_id={call_id}", "")

    normalise._output = output


@variant
def errors_of_tools_lost() -> None:
    in_outputs(lambda call_id, said, _: (call_id, "" if said.startswith("Error") else said))


@variant
def errors_of_tools_under_the_last_id() -> None:
    in_outputs(lambda call_id, said, ids: (ids[-1] if ids and said.startswith("Error") else call_id, said))


# -- what clients send beside ordinary texts: nulls, empty texts, bare tools, characters that are easily changed


def in_bodies(change: Callable[[Any], Any]) -> None:
    """Let `change(body)` replace the body of each request before it is read; it may raise a ProxyError."""
    for name in ("chat_request", "responses_request"):
        old = getattr(app, name)
        setattr(app, name, lambda body, settings, old=old: old(change(body), settings))


def in_messages(change: Callable[[Any], Any]) -> None:
    """Let `change(message)` replace each message or item of a request's list."""

    def changed(body: Any) -> Any:
        lists = {name: body[name] for name in body.keys() & {"messages", "input"} if isinstance(body[name], list)}
        return body | {name: [change(message) for message in given] for name, given in lists.items()}

    in_bodies(changed)


def in_tools(change: Callable[[list[Any]], list[Any]]) -> None:
    """Let `change(tools)` replace the declared tools of each request that has some."""
    in_bodies(lambda body: body | {"tools": change(body["tools"])} if body.get("tools") else body)


def _refused_if(wrong: Callable[[Any], bool]) -> Callable[[Any], Any]:
    def change(value: Any) -> Any:
        if wrong(value):
            raise ProxyError(400, "This request has an empty or missing value.")
        return value

    return change


@variant
def nulls_are_refused() -> None:
    in_bodies(_refused_if(lambda body: None in body.values()))


@variant
def empty_outputs_are_refused() -> None:
    in_messages(
        _refused_if(lambda message: message.get("output") == "" or (message.get("role") == "tool" and not message["content"]))
    )


@variant
def empty_texts_before_calls_are_refused() -> None:
    in_messages(_refused_if(lambda message: message.get("role") == "assistant" and message.get("content") == ""))


def _in_texts(change: Callable[[str], str], *roles: str) -> None:
    def changed(message: Any) -> Any:
        name = "output" if message.get("type") == "function_call_output" else "content"
        mine = message.get("role", "tool") in roles and isinstance(message.get(name), str)
        return message | {name: change(message[name])} if mine else message

    in_messages(changed)


@variant
def texts_of_the_user_normalised() -> None:
    _in_texts(lambda text: unicodedata.normalize("NFKC", text), "user")


@variant
def outputs_of_tools_escaped() -> None:
    _in_texts(html.escape, "tool")


@variant
def line_ends_of_system_texts_changed() -> None:
    _in_texts(lambda text: text.replace("\r\n", "\n"), "system")


@variant
def tools_without_parameters_are_refused() -> None:
    bare = _refused_if(lambda each: not each.get("function", each).get("parameters"))
    in_tools(lambda tools: [bare(each) for each in tools])


@variant
def only_the_first_tool_that_works() -> None:
    in_tools(lambda tools: tools[:1])


@variant
def only_the_last_tool_that_works() -> None:
    in_tools(lambda tools: tools[-1:])


@variant
def tools_lose_what_is_not_ascii() -> None:
    in_tools(lambda tools: json.loads(json.dumps(tools, ensure_ascii=False).encode("ascii", "replace")))


@variant
def tool_choices_lost() -> None:
    after(payloads, "native_choice", lambda *_: [])


@variant
def required_calls_are_optional() -> None:
    in_bodies(lambda body: body | {"tool_choice": "auto"} if body.get("tool_choice") == "required" else body)


@variant
def named_calls_are_optional() -> None:
    in_bodies(lambda body: body | {"tool_choice": "auto"} if isinstance(body.get("tool_choice"), dict) else body)


@variant
def assistants_in_parts_lost() -> None:
    own = ("assistant", list)
    in_messages(lambda each: each | {"content": ""} if (each.get("role"), type(each.get("content"))) == own else each)


@variant
def full_access_for_every_client() -> None:
    put("thread/start", sandbox="danger-full-access")


@variant
def full_access_in_the_turn() -> None:
    put("turn/start", sandboxPolicy={"type": "dangerFullAccess"})
