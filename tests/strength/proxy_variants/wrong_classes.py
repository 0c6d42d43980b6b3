"""Mistakes of real proxies, one of each known class: events of foreign threads, doubled prompts, lost items, unknown members."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from codex_replay.reference.proxy import app, errors
from codex_replay.reference.proxy.answering import chat, events, responses
from codex_replay.reference.proxy.answering.dialect import DialectParser
from codex_replay.reference.proxy.answering.events import AgentMessage, Delta
from codex_replay.reference.proxy.app import App
from codex_replay.reference.proxy.asking import payloads
from codex_replay.reference.proxy.exchange import Exchange
from codex_replay.reference.proxy.wire import app_server
from codex_replay.reference.proxy.wire.app_server import AppServer
from codex_replay.reference.proxy.wire.http import Answer
from tests.strength.proxy_variants.patching import after, in_call, in_params, variant


def _to_the_newest() -> None:
    """What comes for a thread that has no inbox goes to the one that was opened last."""
    old = AppServer._line

    def line(self: AppServer, data: bytes) -> None:
        old(self, data)
        message = app_server.loads(data)
        params = message.get("params") or {}
        thread = params.get("threadId") or params.get("conversationId")
        if thread and "id" not in message and self._inboxes and thread not in self._inboxes:
            [*self._inboxes.values()][-1].put_nowait(app_server.Message(message["method"], params))

    AppServer._line = line


@variant
def events_of_any_thread() -> None:
    _to_the_newest()


@variant
def an_unread_turn_goes_on() -> None:
    async def interrupt(self: Exchange, server: AppServer) -> None:
        return None

    Exchange._interrupt = interrupt
    _to_the_newest()


@variant
def a_hang_up_ends_the_app_server() -> None:
    async def interrupt(self: Exchange, server: AppServer) -> None:
        server._process.kill()

    Exchange._interrupt = interrupt


@variant
def prompt_in_turn_and_message() -> None:
    old = Exchange._begin_v2

    async def begin(self: Exchange) -> None:
        await old(self)
        assert self._server is not None
        items = payloads.v1_items(self._asked)
        await self._server.ask("sendUserMessage", {"conversationId": self._thread, "items": items})

    Exchange._begin_v2 = begin


@variant
def repeated_starts_lost() -> None:
    old = Exchange.events

    async def following(self: Exchange) -> AsyncIterator[Any]:
        before = ""
        async for event in old(self):
            if isinstance(event, Delta):
                text, new = event.text, event.text.removeprefix(before)
                before = text
                yield event._replace(text=new)
            elif not isinstance(event, AgentMessage):
                yield event

    Exchange.events = following


@variant
def partial_blocks_of_another_dialect_shown() -> None:
    def close(self: DialectParser) -> list[Any]:
        rest, self._rest = self._rest, ""
        return [rest] if rest else []

    DialectParser.close = close


@variant
def usage_from_a_field_that_is_none() -> None:
    old = events._usage
    events._usage = lambda info, total: old({total: {"input": 1, "output": 1}}, total) if old(info, total) else None


@variant
def a_refused_login_is_the_clients() -> None:
    old = events.from_codex

    def from_codex(message: str, info: Any) -> Any:
        return errors.bad_request(message) if " 401 " in message else old(message, info)

    events.from_codex = from_codex


@variant
def connections_closed_without_a_word() -> None:
    old = Answer._head

    def head(self: Answer, *given: Any) -> None:
        old(self, *given)
        self._request.keep_alive = False

    Answer._head = head


@variant
def previous_responses_forgotten() -> None:
    old = app.responses_request
    app.responses_request = lambda body, settings: old(
        {key: value for key, value in body.items() if key != "previous_response_id"}, settings
    )


@variant
def never_healthy() -> None:
    async def health(self: App, request: Any, answer: Answer) -> None:
        await answer.send(503, b"{}")

    App._health = health


@variant
def images_lost_that_works() -> None:
    in_params("turn/start", lambda params, *_: params.update(input=[i for i in params["input"] if i["type"] != "image"]))


@variant
def only_the_first_image_that_works() -> None:
    def first(params: Any, *_: Any) -> None:
        images = [item for item in params["input"] if item["type"] == "image"]
        params.update(input=[item for item in params["input"] if item not in images[1:]])

    in_params("turn/start", first)


@variant
def retries_are_failures() -> None:
    def failed(params: Any) -> Any:
        error = params.get("error") or {}
        return events.Failed(errors.from_codex(str(error.get("message")), error.get("codexErrorInfo")))

    events.V2["error"] = failed


@variant
def calls_from_the_requests_alone() -> None:
    events.V2.pop("rawResponseItem/completed")


@variant
def one_client_at_a_time() -> None:
    old, lock = Exchange.events, asyncio.Lock()

    async def held(self: Exchange) -> AsyncIterator[Any]:
        async with lock:
            async for event in old(self):
                yield event

    Exchange.events = held


@variant
def one_thread_for_all_clients() -> None:
    old = AppServer.request

    async def request(self: AppServer, method: str, params: Any, *more: Any) -> Any:
        if method != "thread/start":
            return await old(self, method, params, *more)
        if not hasattr(self, "shared"):
            self.shared = await old(self, method, params, *more)
        else:
            more[0](self.shared)
        return self.shared

    AppServer.request = request


@variant
def more_choices_forgotten() -> None:
    for name in ("chat_request", "responses_request"):
        after(app, name, lambda asked, *_: asked._replace(choices=None))


@variant
def answers_with_one_id() -> None:
    for module, own in ((chat, "chatcmpl-"), (responses, "resp_")):
        old = module.new_id
        module.new_id = lambda prefix, old=old, own=own: f"{prefix}1" if prefix == own else old(prefix)


@variant
def an_early_hang_up_goes_on() -> None:
    old = Exchange._begin_v2

    async def begin(self: Exchange) -> None:
        await asyncio.shield(asyncio.ensure_future(old(self)))

    Exchange._begin_v2 = begin


def _without(lost: Any) -> None:
    """Lose the items of a response's input for which `lost(item, body)` is true."""
    old = app.responses_request

    def request(body: Any, settings: Any) -> Any:
        if isinstance(body.get("input"), list):
            body = {**body, "input": [item for item in body["input"] if not lost(item, body)]}
        return old(body, settings)

    app.responses_request = request


@variant
def calls_and_outputs_lost() -> None:
    _without(lambda item, body: str(item.get("type")).startswith("function_call"))


@variant
def outputs_lost_without_tools() -> None:
    _without(lambda item, body: item.get("type") == "function_call_output" and not body.get("tools"))


def _tools(kept: Any) -> None:
    """Drop the tools of a response for which `kept(tool)` is false."""
    old = app.responses_request
    app.responses_request = lambda body, settings: old(
        {**body, "tools": [tool for tool in body["tools"] if kept(tool)]} if body.get("tools") else body, settings
    )


@variant
def flat_tools_lost() -> None:
    _tools(lambda tool: "function" in tool)


@variant
def nested_tools_lost() -> None:
    _tools(lambda tool: "function" not in tool)


@variant
def members_that_092_does_not_know() -> None:
    in_params("thread/start", lambda params, *_: params.update(parallelToolCalls=True))


@variant
def unknown_members_beside_the_specified_ones() -> None:
    in_params("sendUserMessage", lambda params, *_: params.update(parallelToolCalls=True))


@variant
def capabilities_on_the_handshake() -> None:
    def change(value: dict[str, Any]) -> dict[str, Any]:
        if value["method"] != "initialize":
            return value
        return {**value, "params": {**value["params"], "capabilities": {"experimentalApi": True}}}

    in_call(change)
