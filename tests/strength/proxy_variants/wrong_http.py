"""Who may ask, and what a bad request is answered."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from codex_replay.reference.proxy import app
from codex_replay.reference.proxy.app import App
from codex_replay.reference.proxy.errors import ProxyError
from codex_replay.reference.proxy.wire.http import Answer, Disconnected
from tests.strength.proxy_variants.patching import variant


def let_in(who: Any) -> None:
    """Let requests in whose header is so, besides those with the right key."""
    old = App._authorise

    def authorise(self: App, request: Any) -> None:
        if not who(request.headers.get("authorization")):
            old(self, request)

    App._authorise = authorise


@variant
def anyone_may_ask() -> None:
    let_in(lambda header: header is None)


@variant
def any_bearer_will_do() -> None:
    let_in(lambda header: (header or "").startswith("Bearer sk-"))


@variant
def an_empty_bearer_will_do() -> None:
    let_in(lambda header: (header or "").strip() == "Bearer")


@variant
def basic_will_do() -> None:
    let_in(lambda header: (header or "").startswith("Basic "))


@variant
def forbidden_for_unauthorised() -> None:
    old = App._authorise

    def authorise(self: App, request: Any) -> None:
        try:
            old(self, request)
        except ProxyError as error:
            raise ProxyError(403, error.message, code=error.code) from None

    App._authorise = authorise


@variant
def unauthorised_without_an_error() -> None:
    old = Answer.send

    async def send(self: Answer, status: int, body: bytes, headers: Any = None) -> None:
        await old(self, status, b"{}" if status == 401 else body, headers)

    Answer.send = send


@variant
def scheme_only_in_capitals() -> None:
    old = App._authorise

    def authorise(self: App, request: Any) -> None:
        if request.headers.get("authorization", "").startswith("bearer "):
            raise ProxyError(401, "A valid API key is needed.")
        old(self, request)

    App._authorise = authorise


@variant
def bad_bodies_are_our_fault() -> None:
    old = app._body

    def body(request: Any) -> Any:
        try:
            return old(request)
        except ProxyError as error:
            raise ProxyError(500, error.message) from None

    app._body = body


@variant
def an_empty_body_is_a_greeting() -> None:
    old = app._body

    def body(request: Any) -> Any:
        greeting = {"messages": [{"role": "user", "content": "Hello"}], "input": "Hello"}
        return old(request) if request.body else greeting

    app._body = body


@variant
def a_list_is_the_messages() -> None:
    old = app._body

    def body(request: Any) -> Any:
        greeting = {"messages": [{"role": "user", "content": "Hello"}], "input": "Hello"}
        return greeting if request.body == b"[]" else old(request)

    app._body = body


@variant
def no_prompt_is_an_empty_one() -> None:
    for name, empty in (("chat_request", {"messages": [{"role": "user", "content": ""}]}), ("responses_request", {"input": ""})):
        old = getattr(app, name)

        def request(body: Any, settings: Any, old: Any = old, empty: Any = empty) -> Any:
            return old({**empty, **body}, settings)

        setattr(app, name, request)


@variant
def no_prompt_is_unprocessable() -> None:
    for name in ("chat_request", "responses_request"):
        old = getattr(app, name)

        def request(body: Any, settings: Any, old: Any = old) -> Any:
            try:
                return old(body, settings)
            except ProxyError as error:
                raise ProxyError(422, error.message) from None

        setattr(app, name, request)


@variant
def unknown_paths_are_welcome() -> None:
    old = App._route

    def route(self: App, request: Any) -> Any:
        try:
            return old(self, request)
        except ProxyError:
            return self._health

    App._route = route


@variant
def unknown_paths_are_bad_requests() -> None:
    old = App._route

    def route(self: App, request: Any) -> Any:
        try:
            return old(self, request)
        except ProxyError as error:
            raise ProxyError(400, error.message) from None

    App._route = route


@variant
def a_bad_body_blocks_the_next_request() -> None:
    old, bad = app._body, list[bool]()

    def body(request: Any) -> Any:
        if bad:
            bad.clear()
            raise ProxyError(503, "Try again later.")
        try:
            return old(request)
        except ProxyError:
            bad.append(True)
            raise

    app._body = body


@variant
def no_request_id() -> None:
    old = Answer._head

    def head(self: Answer, status: int, headers: Any) -> None:
        self.request_id = ""
        old(self, status, headers)

    Answer._head = head


@variant
def one_request_id_for_all() -> None:
    old = Answer._head

    def head(self: Answer, status: int, headers: Any) -> None:
        self.request_id = "req_1"
        old(self, status, headers)

    Answer._head = head


@variant
def request_ids_only_for_chat() -> None:
    old = Answer._head

    def head(self: Answer, status: int, headers: Any) -> None:
        self.request_id = self.request_id if "chat" in self._request.path else ""
        old(self, status, headers)

    Answer._head = head


@variant
def titles_not_intercepted() -> None:
    app.intercepted = lambda asked: None


@variant
def titles_answered_with_nothing() -> None:
    old = app.intercepted
    app.intercepted = lambda asked: "" if old(asked) is not None else None


@variant
def summaries_not_intercepted() -> None:
    old = app.intercepted
    app.intercepted = lambda asked: None if "ummar" in asked.items[0].value else old(asked)


@variant
def every_talk_of_titles_intercepted() -> None:
    old = app.intercepted
    app.intercepted = lambda asked: "New chat" if "title" in asked.items[0].value else old(asked)


# -- streams that stay open


def keeps_alive(message: bytes, seconds: float) -> None:
    """Send this again and again between the events of a stream."""
    start, end = Answer.start, Answer.end
    pings: dict[Answer, asyncio.Task[None]] = {}

    async def ping(answer: Answer) -> None:
        with suppress(Disconnected):
            while True:
                await answer.write(message)
                await asyncio.sleep(seconds)

    async def begin(self: Answer, headers: Any) -> None:
        await start(self, headers)
        pings[self] = asyncio.create_task(ping(self))

    async def finish(self: Answer) -> None:
        pings.pop(self).cancel()
        await end(self)

    Answer.start, Answer.end = begin, finish


@variant
def keep_alives_that_are_events() -> None:
    keeps_alive(b"data: ping\n\n", 0.5)


@variant
def keep_alives_without_data() -> None:
    keeps_alive(b"data:\n\n", 0.5)


# -- CORS


@variant
def cors_never() -> None:
    old = Answer._head

    def head(self: Answer, status: int, headers: dict[str, str]) -> None:
        self._request.headers.pop("origin", None)
        old(self, status, headers)

    Answer._head = head


@variant
def cors_not_on_streams() -> None:
    old = Answer.start

    async def start(self: Answer, headers: dict[str, str]) -> None:
        self._request.headers.pop("origin", None)
        await old(self, headers)

    Answer.start = start


@variant
def cors_not_on_refusals() -> None:
    old = Answer.send

    async def send(self: Answer, status: int, body: bytes, headers: Any = None) -> None:
        if status >= 400:
            self._request.headers.pop("origin", None)
        await old(self, status, body, headers)

    Answer.send = send


@variant
def preflight_needs_a_bearer() -> None:
    old = App.handle

    async def handle(self: App, request: Any, answer: Answer) -> None:
        if request.method == "OPTIONS" and "authorization" not in request.headers:
            await answer.send(401, b'{"error":{"message":"Log in."}}')
        else:
            await old(self, request, answer)

    App.handle = handle


@variant
def preflight_allows_any_header_but_the_bearer() -> None:
    app.PREFLIGHT["access-control-allow-headers"] = "*"


@variant
def preflight_without_post() -> None:
    app.PREFLIGHT["access-control-allow-methods"] = "GET"


@variant
def preflight_opens_a_conversation() -> None:
    old = App.handle

    async def handle(self: App, request: Any, answer: Answer) -> None:
        if request.method == "OPTIONS":
            server = await self._pool.acquire()
            await server.request("newConversation", {})
            self._pool.release(server)
        await old(self, request, answer)

    App.handle = handle
