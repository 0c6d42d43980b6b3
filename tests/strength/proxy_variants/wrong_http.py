"""Who may ask, and what a bad request is answered."""

from __future__ import annotations

from typing import Any

from harness.reference.proxy import app
from harness.reference.proxy.app import App
from harness.reference.proxy.errors import ProxyError
from harness.reference.proxy.http import Answer
from harness.reference.proxy_variants.patching import variant


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
