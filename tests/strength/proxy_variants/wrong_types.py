"""Members of other types, and streams that do not add up."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from codex_replay.reference.proxy import app, exchange
from codex_replay.reference.proxy.answering import responses
from codex_replay.reference.proxy.answering.chat import ChatAnswer
from codex_replay.reference.proxy.answering.responses import ResponsesAnswer
from codex_replay.reference.proxy.asking import normalise
from codex_replay.reference.proxy.asking.normalise import Asked
from codex_replay.reference.proxy.errors import ProxyError, bad_request
from codex_replay.reference.proxy.settings import Settings
from codex_replay.reference.proxy.wire import app_server
from codex_replay.reference.proxy.wire.app_server import AppServer, Message
from tests.strength.proxy_variants.patching import PATCHES, after, variant
from tests.strength.proxy_variants.wrong_answers import in_events, in_values, in_whole
from tests.strength.proxy_variants.wrong_threads import in_tools

SYSTEM = ("system", "developer")


@variant
def tools_of_a_response_as_text() -> None:
    in_whole(ResponsesAnswer, lambda body: body.update(tools="none"))


@variant
def chat_index_as_text() -> None:
    in_whole(ChatAnswer, lambda body: body["choices"][0].update(index="0"))


@variant
def errors_as_text() -> None:
    ProxyError.body = property(lambda self: self.message)


@variant
def models_listed_twice() -> None:
    after(app.models, "listed", lambda found: [*found, *found])


@variant
def cached_tokens_guessed() -> None:
    def change(found: Any, *_: Any) -> Any:
        if found:
            details = found.get("input_tokens_details") or found["prompt_tokens_details"]
            details["cached_tokens"] += 1
        return found

    after(responses, "_spent", change)
    after(ChatAnswer, "_spent", change)


@variant
def parts_added_with_text() -> None:
    in_events("response.content_part.added", lambda value: value["part"].update(text="Hello"))


@variant
def settings_forgotten_at_the_end() -> None:
    in_events("response.completed", lambda value: value["response"].update(temperature=None))


@variant
def chunks_of_several_times() -> None:
    count = iter(range(1, 1_000_000))
    in_values(ChatAnswer, lambda value: value.update(created=next(count)))


# -- previous_response_id, which the reference proxy refuses: each variant keeps the input of every response
Items = list[Any]
KEPT: dict[str, Items] = {}


def known(earlier: str) -> Items:
    """Return the conversation that ends with a response. Raises `ProxyError` (400)."""
    if earlier not in KEPT:
        raise bad_request(f"The response {earlier} does not exist.", "previous_response_id")
    return KEPT[earlier]


def continues(find: Callable[[str], Items] = known, keeps: Callable[[Asked], bool] = lambda asked: True) -> None:
    """Let the proxy support `previous_response_id`: `find` returns the earlier items, `keeps` tells which responses are kept."""
    old = app.responses_request

    def request(body: dict[str, Any], settings: Settings) -> Asked:
        given = body.get("input")
        if earlier := body.get("previous_response_id"):
            items = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
            body = {**body, "previous_response_id": None, "input": [*find(earlier), *items]}
        return old(body, settings)

    def keep(response: dict[str, Any], asked: Asked) -> dict[str, Any]:
        given = asked.body["input"]
        if keeps(asked):
            KEPT[response["id"]] = [{"role": "user", "content": given}] if isinstance(given, str) else given
        return response

    app.responses_request = request
    after(responses, "_empty", keep)


@variant
def a_previous_response_of_anyone() -> None:
    continues(lambda earlier: [*KEPT.values()][-1])


@variant
def streamed_responses_are_not_kept() -> None:
    continues(lambda earlier: KEPT.get(earlier) or [], lambda asked: not asked.stream)


@variant
def unknown_previous_responses_begin_anew() -> None:
    continues(lambda earlier: KEPT.get(earlier, []))


@variant
def conversations_die_with_the_app_server() -> None:
    continues()
    old = AppServer.__init__

    def init(self: AppServer, *given: Any) -> None:
        for earlier in KEPT:
            KEPT[earlier] = []
        old(self, *given)

    AppServer.__init__ = init


@variant
def usage_of_the_whole_conversation() -> None:
    spent: list[int] = []
    continues()

    def add(usage: dict[str, Any] | None, *_: Any) -> dict[str, Any] | None:
        if usage:
            spent.append(usage["total_tokens"])
            usage["total_tokens"] = sum(spent)
        return usage

    after(responses, "_spent", add)


@variant
def outputs_after_a_previous_response_lost() -> None:
    continues()
    old = app.responses_request

    def request(body: dict[str, Any], settings: Settings) -> Asked:
        if body.get("previous_response_id") and isinstance(body.get("input"), list):
            texts = [item["output"] for item in body["input"] if item.get("type") == "function_call_output"]
            marks = [{"role": "user", "content": text.split(". ", 1)[-1]} for text in texts]
            body = {**body, "input": [item for item in body["input"] if item.get("type") != "function_call_output"] + marks}
        return old(body, settings)

    app.responses_request = request


# -- settings that stay for the next request


def _stays(*names: str) -> None:
    """Let a request without some settings have those of the last request that had them."""
    kept: dict[str, Any] = {}

    def stay(asked: Asked, *_: Any) -> Asked:
        given = {name: value for name in names if (value := getattr(asked, name)) and (name != "tools" or value.definitions)}
        kept.update(given)
        return asked._replace(**kept)

    after(app, "chat_request", stay)
    after(app, "responses_request", stay)


@variant
def instructions_stay() -> None:
    _stays("system", "instructions")


@variant
def tools_stay() -> None:
    _stays("tools")


@variant
def an_effort_stays() -> None:
    _stays("effort")


@variant
def a_schema_stays() -> None:
    _stays("schema", "format")


# -- parts of a request that are lost or moved


@variant
def an_earlier_model_stays_in_the_conversation() -> None:
    """A continued conversation keeps the model of its first request, also on chat, where its first message identifies it."""
    models: dict[str, Any] = {}
    continues()

    def keep(asked: Asked, *_: Any) -> Asked:
        return asked._replace(model=models.setdefault(asked.items[0].value.split("\n")[0].removeprefix("[user] "), asked.model))

    after(app, "chat_request", keep)
    after(app, "responses_request", keep)


@variant
def a_previous_response_keeps_its_model() -> None:
    continues()
    old = app.responses_request

    def request(body: dict[str, Any], settings: Settings) -> Asked:
        return old({**body, "model": "gpt-5.2"} if body.get("previous_response_id") else body, settings)

    app.responses_request = request


@variant
def every_model_is_the_default() -> None:
    _each(lambda asked: asked._replace(model=asked.model._replace(effective="gpt-5.2")))


@variant
def json_mode_ignored() -> None:
    _each(lambda asked: asked._replace(format=None) if (asked.format or {}).get("type") == "json_object" else asked)


@variant
def eight_tools_at_most() -> None:
    _each(lambda asked: asked._replace(tools=asked.tools._replace(definitions=asked.tools.definitions[:8])))


PATCHES["eight-tools-at-most-that-work"] = PATCHES["eight-tools-at-most"]


@variant
def arguments_in_the_history_encoded_twice() -> None:
    old = normalise._call
    normalise._call = lambda name, call_id, given, transcript: old(name, call_id, json.dumps(given), transcript)


PATCHES["arguments-in-the-history-encoded-twice-that-work"] = PATCHES["arguments-in-the-history-encoded-twice"]


@variant
def errors_without_a_type() -> None:
    whole = ProxyError.body.fget
    ProxyError.body = property(lambda self: {name: value for name, value in whole(self).items() if name != "type"})


def _each(change: Callable[[Asked], Asked]) -> None:
    """Change what is asked, on both endpoints."""
    after(app, "chat_request", lambda asked, *_: change(asked))
    after(app, "responses_request", lambda asked, *_: change(asked))


@variant
def messages_after_the_last_user_lost() -> None:
    def cut(messages: Items) -> Items:
        users = [at for at, message in enumerate(messages) if message.get("role") == "user"]
        return messages[: users[-1] + 1] if users else messages

    _in_messages(cut)


@variant
def system_texts_between_messages_lost() -> None:
    def cut(messages: Items) -> Items:
        begun = next((at for at, message in enumerate(messages) if message.get("role") not in SYSTEM), 0)
        return messages[:begun] + [message for message in messages[begun:] if message.get("role") not in SYSTEM]

    _in_messages(cut)


@variant
def messages_without_a_text_lost() -> None:
    def has_text(message: Any) -> bool:
        parts = message.get("content")
        return not isinstance(parts, list) or any("text" in part for part in parts)

    _in_messages(lambda messages: [message for message in messages if has_text(message)])


@variant
def descriptions_of_tools_cut() -> None:
    in_tools(lambda tools: [{**tool, "description": tool["description"][:500]} for tool in tools])


@variant
def hyphens_in_names_of_tools_replaced() -> None:
    in_tools(lambda tools: [{**tool, "name": tool["name"].replace("-", "_")} for tool in tools])


@variant
def stream_options_mean_a_usage() -> None:
    after(app, "chat_request", lambda asked, body, *_: asked._replace(include_usage=bool(body.get("stream_options"))))


@variant
def items_of_later_versions_are_failures() -> None:
    old = exchange.read_event

    def read(message: Message, v2: bool) -> Any:
        if (message.params.get("item") or {}).get("type") == "later":
            raise ProxyError(502, "The app-server sent an unknown item.")
        return old(message, v2)

    exchange.read_event = read


@variant
def halves_of_emoji_sent_to_the_app_server() -> None:
    app_server.for_server = lambda value: json.dumps(value).encode() + b"\n"


@variant
def images_behind_the_texts() -> None:
    _each(lambda asked: asked._replace(items=tuple(sorted(asked.items, key=lambda item: item.kind == "image"))))


@variant
def parallel_calls_in_any_case() -> None:
    _each(lambda asked: asked._replace(tools=asked.tools._replace(parallel=True)))


def _changed(old: Callable[..., Asked], key: str, change: Callable[[Items], Items]) -> Callable[..., Asked]:
    def request(body: dict[str, Any], settings: Settings) -> Asked:
        given = body.get(key)
        return old({**body, key: change(given) if isinstance(given, list) else given}, settings)

    return request


def _in_messages(change: Callable[[Items], Items]) -> None:
    """Change the messages of each request before they are read."""
    for name, key in (("chat_request", "messages"), ("responses_request", "input")):
        setattr(app, name, _changed(getattr(app, name), key, change))


@variant
def only_the_last_twenty_messages() -> None:
    _in_messages(lambda messages: messages[-20:])


@variant
def parts_of_a_text_trimmed() -> None:
    def trim(messages: Items) -> Items:
        for message in messages:
            parts = message.get("content") if isinstance(message, dict) else None
            for part in parts if isinstance(parts, list) and len(parts) > 1 else ():
                if isinstance(part.get("text"), str):
                    part["text"] = part["text"].strip()
        return messages

    _in_messages(trim)
