"""Mistakes in what ordinary clients send and rely on: long bodies, bodies in pieces, a charset, white space, a null, the time,
and mistakes of the streaming handler alone; and how an app-server is started that ends at once."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import httptools

from codex_replay.reference.proxy import app
from codex_replay.reference.proxy.answering import chat, responses
from codex_replay.reference.proxy.answering.chat import ChatAnswer
from codex_replay.reference.proxy.answering.chunks import Call, Done, Text
from codex_replay.reference.proxy.answering.events import Delta
from codex_replay.reference.proxy.app import App
from codex_replay.reference.proxy.errors import ProxyError
from codex_replay.reference.proxy.exchange import Exchange
from codex_replay.reference.proxy.settings import Settings
from codex_replay.reference.proxy.wire import http
from codex_replay.reference.proxy.wire.app_server import AppServer
from tests.strength.proxy_variants.patching import in_params, variant
from tests.strength.proxy_variants.wrong_answers import in_values


def _refuse(status: int, wrong: Any) -> None:
    """Refuse the requests for which `wrong(request)` is true."""
    old = App._authorise

    def authorise(self: App, request: Any) -> None:
        if wrong(request):
            raise ProxyError(status, "This request is not taken.")
        old(self, request)

    App._authorise = authorise


@variant
def bodies_of_100_kb_at_most() -> None:
    _refuse(413, lambda request: len(request.body) > 102_400)


@variant
def bodies_of_refused_requests_stay_unread() -> None:
    """What follows the head of a request without a key is read as the next request."""
    old = http.Connection.on_message_complete

    def again(self: http.Connection, body: bytes) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self.data_received(body)

    def complete(self: http.Connection) -> None:
        old(self)
        if "authorization" not in self._request.headers and (body := b"".join(self._body)):
            asyncio.get_running_loop().call_soon(again, self, body)

    http.Connection.on_message_complete = complete


@variant
def chunked_requests_refused() -> None:
    _refuse(411, lambda request: "transfer-encoding" in request.headers)


@variant
def query_is_part_of_the_path() -> None:
    http._path = lambda target: target.decode("latin-1")


@variant
def content_length_in_characters() -> None:
    old = http.Answer.send

    async def send(self: http.Answer, status: int, body: bytes, headers: http.Headers | None = None) -> None:
        text = json.dumps(json.loads(body), ensure_ascii=False) if body else ""
        length = {"content-length": str(len(text))} if text else {}
        await old(self, status, text.encode("utf-8", "replace"), {**(headers or {}), **length})

    http.Answer.send = send


@variant
def stderr_of_the_app_server_never_read() -> None:
    old: Any = asyncio.create_subprocess_exec

    async def start(*argv: Any, **given: Any) -> Any:
        _, write = os.pipe()
        try:
            return await old(*argv, **given, stderr=write)
        finally:
            os.close(write)

    asyncio.create_subprocess_exec = start


@variant
def reasoning_items_refused() -> None:
    old = app.responses_request

    def request(body: Any, settings: Any) -> Any:
        given = body.get("input")
        if isinstance(given, list) and any(isinstance(item, dict) and item.get("type") == "reasoning" for item in given):
            raise ProxyError(400, "Unknown item type: reasoning.")
        return old(body, settings)

    app.responses_request = request


@variant
def content_type_compared_as_a_whole() -> None:
    _refuse(415, lambda request: request.method == "POST" and request.headers.get("content-type") != "application/json")


@variant
def pieces_of_a_body_decoded_alone() -> None:
    old = http.Connection.on_body
    http.Connection.on_body = lambda self, body: old(self, body.decode("utf-8", "replace").encode())


@variant
def white_space_at_the_start_lost() -> None:
    old = Exchange.events

    async def events(self: Exchange) -> AsyncIterator[Any]:
        begun = False
        async for event in old(self):
            if isinstance(event, Delta) and not begun:
                event = event._replace(text=event.text.lstrip())
                begun = bool(event.text)
            yield event

    Exchange.events = events


@variant
def null_is_a_text() -> None:
    old = app.chat_request

    def request(body: Any, settings: Any) -> Any:
        messages = [
            {**message, "content": str(message.get("content"))} if message.get("tool_calls") else message
            for message in body.get("messages") or []
        ]
        return old({**body, "messages": messages} if messages else body, settings)

    app.chat_request = request


@variant
def time_in_milliseconds() -> None:
    class Milliseconds:
        @staticmethod
        def time() -> float:
            return clock() * 1000

    clock: Callable[[], float] = chat.time.time
    chat.time = responses.time = Milliseconds


@variant
def only_streams_are_interrupted() -> None:
    old = Exchange._interrupt

    async def interrupt(self: Exchange, server: AppServer) -> None:
        if self._asked.stream:
            await old(self, server)

    Exchange._interrupt = interrupt


def in_streamed(method: str, change: Any) -> None:
    """Change the params of a method when the client asked for a stream: `change(params, asked)`."""
    in_params(method, lambda params, asked, _: change(params, asked) if asked.stream else None)


@variant
def streamed_model_is_the_alias() -> None:
    in_streamed("newConversation", lambda params, asked: params.update(model=asked.model.requested))


@variant
def streamed_without_temperature() -> None:
    in_streamed("sendUserMessage", lambda params, _: params.update(temperature=None))


@variant
def streamed_turn_is_never_skipped() -> None:
    old = Exchange._skips_turn
    Exchange._skips_turn = lambda self: old(self) and not self._asked.stream


@variant
def streamed_sandbox_is_read_only() -> None:
    in_streamed("sendUserTurn", lambda params, _: params.update(sandboxPolicy={"type": "read-only"}))


# -- an app-server that ends at its start


def _starts(seconds: float, pause: float, then: Any) -> None:
    """An app-server that does not start is started again and again, for so long, with a pause; then `then(error)` is raised."""
    old = AppServer.start

    async def start(cls: Any, settings: Settings) -> AppServer:
        deadline = time.monotonic() + seconds
        while True:
            try:
                return await old(settings)
            except ProxyError as error:
                if time.monotonic() > deadline:
                    raise then(error) from None
                await asyncio.sleep(pause)

    AppServer.start = classmethod(start)


@variant
def started_again_without_a_pause() -> None:
    _starts(1.5, 0, lambda error: error)


@variant
def waits_for_an_app_server_that_does_not_start() -> None:
    _starts(4, 0.5, lambda error: error)


@variant
def no_app_server_is_the_clients_fault() -> None:
    _starts(0, 0, lambda error: ProxyError(429, error.message, code="no_app_server"))


def _silent(on_nothing: Callable[[Any], Any]) -> None:
    """Change the answers without a text or a call: `on_nothing(last text)` returns a piece for them, or raises."""
    old = app.answer_chunks
    last = ""

    async def chunks(*given: Any) -> AsyncIterator[Any]:
        nonlocal last
        text, calls = "", False
        async for piece in old(*given):
            text += piece.text if isinstance(piece, Text) else ""
            calls = calls or isinstance(piece, Call)
            if isinstance(piece, Done) and not text and not calls and (found := on_nothing(last)):
                yield found
            yield piece
        last = text or last

    app.answer_chunks = chunks


@variant
def empty_answers_are_errors() -> None:
    def refuse(_: str) -> None:
        raise ProxyError(502, "The model said nothing.")

    _silent(refuse)


@variant
def the_last_answer_again() -> None:
    _silent(lambda last: Text(last or "Hello."))


@variant
def every_call_has_index_zero() -> None:
    def change(value: dict[str, Any]) -> None:
        for choice in value.get("choices", []):
            for call in choice["delta"].get("tool_calls", []):
                call["index"] = 0

    in_values(ChatAnswer, change)


@variant
def usage_of_another_client() -> None:
    """All requests share the usage that the app-server has reported last; it is read when the turn has ended."""
    old = app.answer_chunks
    last: list[Any] = [None]

    async def chunks(*given: Any) -> AsyncIterator[Any]:
        async for piece in old(*given):
            if isinstance(piece, Done):
                last[0] = piece.usage
                await asyncio.sleep(0.3)
                yield Done(last[0])
            else:
                yield piece

    app.answer_chunks = chunks
