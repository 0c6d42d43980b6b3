"""The routes of the proxy: check the access, read the request, and choose the form of the answer."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from codex_replay.reference.proxy.answering.chat import ChatAnswer
from codex_replay.reference.proxy.answering.chunks import Done, Piece, Text, answer_chunks
from codex_replay.reference.proxy.answering.responses import ResponsesAnswer
from codex_replay.reference.proxy.asking import models
from codex_replay.reference.proxy.asking.intercept import intercepted
from codex_replay.reference.proxy.asking.normalise import Asked, chat_request, responses_request
from codex_replay.reference.proxy.errors import ProxyError, bad_request
from codex_replay.reference.proxy.exchange import Exchange
from codex_replay.reference.proxy.settings import MODES, OPENAI_JSON, Settings
from codex_replay.reference.proxy.wire.http import Answer, Request
from codex_replay.reference.proxy.wire.json_text import for_client, loads
from codex_replay.reference.proxy.wire.pool import Pool

STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", "x-accel-buffering": "no"}
HEALTH = ("/health", "/healthz")
#: What a page of another origin may send; the header of the origin itself is on every answer.
PREFLIGHT = {
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": "authorization, content-type, x-proxy-output-mode, x-request-id",
    "access-control-max-age": "600",
}


class App:
    """The HTTP application: the server calls `handle` for each request."""

    def __init__(self, settings: Settings, pool: Pool) -> None:
        self._settings, self._pool = settings, pool
        self._routes: dict[tuple[str, str], Callable[[Request, Answer], Any]] = {
            ("GET", "/v1/models"): self._models,
            ("POST", "/v1/chat/completions"): self._chat,
            ("POST", "/v1/responses"): self._responses,
        }
        self._routes |= {("GET", path): self._health for path in HEALTH}

    async def handle(self, request: Request, answer: Answer) -> None:
        """Answer one request of a client. Every error gets an error object of the API as its answer."""
        try:
            if request.fault:
                raise ProxyError(
                    request.fault, "The request cannot be read." if request.fault == 400 else "The body is too long."
                )
            if request.method == "OPTIONS" and "access-control-request-method" in request.headers:
                await answer.send(204, b"", PREFLIGHT)
                return
            route = self._route(request)
            if request.path not in HEALTH:
                self._authorise(request)
            await route(request, answer)
        except ProxyError as error:
            if not answer.started:
                headers = {"www-authenticate": "Bearer"} if error.status == 401 else {}
                await answer.send(error.status, for_client({"error": error.body}), headers)

    def _route(self, request: Request) -> Callable[[Request, Answer], Any]:
        method = "GET" if request.method == "HEAD" else request.method
        found = self._routes.get((method, request.path))
        if found is None and request.method == "GET" and request.path.startswith("/v1/models/"):
            return self._model
        if found is None:
            known = any(path == request.path for _, path in self._routes)
            raise ProxyError(
                405 if known else 404, f"{request.method} {request.path} is not a route of this proxy.", code="not_found"
            )
        return found

    def _authorise(self, request: Request) -> None:
        """Check the bearer token of a request.

        The token must be present; if the proxy has keys, it must be one of them. Raises `ProxyError` (401) for any other token.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip()
        known = [hmac.compare_digest(token.encode(), key.encode()) for key in self._settings.keys]
        if scheme.lower() != "bearer" or not token or (known and not any(known)):
            raise ProxyError(401, "A valid API key is needed: Authorization: Bearer KEY.", code="invalid_api_key")

    # -- the routes ------------------------------------------------------------------------------------------------------

    async def _health(self, request: Request, answer: Answer) -> None:
        state = {"status": "ok", "profile": self._settings.profile, "app_servers": self._pool.running()}
        await answer.send(200, for_client(state))

    async def _models(self, request: Request, answer: Answer) -> None:
        await answer.send(200, for_client({"object": "list", "data": [_card(name) for name in models.listed()]}))

    async def _model(self, request: Request, answer: Answer) -> None:
        name = request.path.removeprefix("/v1/models/")
        if name not in models.listed():
            raise ProxyError(404, f"There is no model {name!r}.", code="model_not_found")
        await answer.send(200, for_client(_card(name)))

    async def _chat(self, request: Request, answer: Answer) -> None:
        asked = chat_request(_body(request), self._settings)
        await self._answer(asked, ChatAnswer(asked), _mode(request, OPENAI_JSON), answer)

    async def _responses(self, request: Request, answer: Answer) -> None:
        asked = responses_request(_body(request), self._settings)
        shape = ResponsesAnswer(asked)
        mode = _mode(request, self._settings.output_mode)
        if self._settings.intercept and (message := intercepted(asked)) is not None:
            await _carry(_local(message), asked, shape, answer)
        else:
            await self._answer(asked, shape, mode, answer)

    async def _answer(self, asked: Asked, shape: ChatAnswer | ResponsesAnswer, mode: str, answer: Answer) -> None:
        if not self._settings.as_specified and (asked.choices or 1) > 1:
            raise bad_request("n can only be 1: the app-server gives one answer.", "n")
        exchange = Exchange(asked, self._settings, self._pool)
        try:
            await _carry(answer_chunks(exchange, asked, mode), asked, shape, answer)
        finally:
            exchange.close()


async def _carry(source: AsyncIterator[Piece], asked: Asked, shape: ChatAnswer | ResponsesAnswer, answer: Answer) -> None:
    """Send the parts of an answer to the client.

    A stream starts only when the first part is there, so that an earlier failure can still set the HTTP status.
    """
    async with aclosing(source) as found:  # type: ignore[type-var]
        if not asked.stream:
            async for piece in found:
                for _ in shape.feed(piece):
                    pass
            await answer.send(200, for_client(shape.whole()))
            return
        try:
            async for piece in found:
                if not answer.started:
                    await answer.start(STREAM)
                    await answer.write(b"".join(shape.begin()))
                await answer.write(b"".join(shape.feed(piece)))
        except ProxyError as error:
            if not answer.started:
                raise
            await answer.write(b"".join(shape.fail(error)))
        await answer.end()


async def _local(said: str) -> AsyncIterator[Piece]:
    """Return an answer with a text that the proxy itself has written, without the app-server."""
    yield Text(said)
    yield Done(None)


def _body(request: Request) -> dict[str, Any]:
    try:
        found = loads(request.body)
    except (ValueError, RecursionError):
        raise bad_request("The body is not JSON.") from None
    if not isinstance(found, dict):
        raise bad_request("The body is not a JSON object.")
    return found


def _mode(request: Request, usual: str) -> str:
    """Return the output mode that a header of the request selects.

    Without the header, return the default mode from the environment.
    """
    mode = request.headers.get("x-proxy-output-mode", "").strip().lower() or usual
    if mode not in MODES:
        raise bad_request(f"x-proxy-output-mode is {mode!r}; it must be {' or '.join(MODES)}.", "x-proxy-output-mode")
    return mode


def _card(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "codex"}
