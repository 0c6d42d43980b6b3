"""Which calls there are, their order and their envelope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codex_replay.reference.proxy.asking import payloads
from codex_replay.reference.proxy.exchange import Exchange
from codex_replay.reference.proxy.wire.app_server import AppServer
from tests.strength.proxy_variants.patching import in_call, in_params, variant


def resubmitted(method: str) -> None:
    """Send each call of a method twice."""
    old = AppServer.ask

    async def ask(self: AppServer, name: str, *given: Any) -> Any:
        if name == method:
            await old(self, name, *given)
        return await old(self, name, *given)

    AppServer.ask = ask


def unsent(method: str, when: Callable[[Any], bool]) -> None:
    """Leave a call out when its params say so, and act as if it had been accepted."""
    old = AppServer.ask

    async def ask(self: AppServer, name: str, params: Any, then: Any = None) -> Any:
        future = await old(self, "getUserAgent", {}, then) if name == method and when(params) else None
        return future or await old(self, name, params, then)

    AppServer.ask = ask


@variant
def no_jsonrpc() -> None:
    in_call(lambda call: {key: value for key, value in call.items() if key != "jsonrpc"})


@variant
def no_jsonrpc_on_the_handshake() -> None:
    def change(call: Any) -> Any:
        return {k: v for k, v in call.items() if k != "jsonrpc"} if call.get("method") in ("initialize", "initialized") else call

    in_call(change)


@variant
def jsonrpc_1() -> None:
    in_call(lambda call: {**call, "jsonrpc": "1.0"})


@variant
def envelope_with_a_time() -> None:
    in_call(lambda call: {**call, "ts": 1})


@variant
def ids_start_again() -> None:
    old = AppServer.ask

    async def ask(self: AppServer, method: str, *given: Any) -> Any:
        if method == "newConversation":
            self._next = 2
        return await old(self, method, *given)

    AppServer.ask = ask


@variant
def message_before_turn() -> None:
    old, turns = AppServer.ask, dict[int, Any]()

    async def ask(self: AppServer, method: str, params: Any, then: Any = None) -> Any:
        if method == "sendUserTurn":  # held back until the message has gone out
            turns[id(self)] = params
            return await old(self, "getUserAgent", {})
        future = await old(self, method, params, then)
        if method == "sendUserMessage" and (turn := turns.pop(id(self), None)) is not None:
            await old(self, "sendUserTurn", turn)
        return future

    AppServer.ask = ask


@variant
def never_a_turn() -> None:
    Exchange._skips_turn = lambda self: True


@variant
def no_turn_when_streamed() -> None:
    Exchange._skips_turn = lambda self: self._asked.stream


@variant
def no_turn_without_stream() -> None:
    Exchange._skips_turn = lambda self: not self._asked.stream


@variant
def no_turn_on_responses() -> None:
    Exchange._skips_turn = lambda self: self._asked.endpoint == "responses"


@variant
def turn_twice() -> None:
    resubmitted("sendUserTurn")


@variant
def message_twice() -> None:
    resubmitted("sendUserMessage")


@variant
def conversation_twice() -> None:
    resubmitted("newConversation")


@variant
def skip_turn_ignored() -> None:
    Exchange._skips_turn = lambda self: False


@variant
def skip_turn_inverted() -> None:
    Exchange._skips_turn = lambda self: self._asked.endpoint == "responses" and not self._settings.skip_turn


@variant
def skip_turn_on_chat_too() -> None:
    Exchange._skips_turn = lambda self: self._settings.skip_turn


@variant
def skip_turn_skips_the_message() -> None:
    old = AppServer.ask

    async def ask(self: AppServer, method: str, params: Any, then: Any = None) -> Any:
        if method == "sendUserMessage" and skipping:
            return await old(self, "sendUserTurn", made[-1], then)
        return await old(self, method, params, then)

    skipping, made = list[bool](), list[Any]()
    message = payloads.send_user_message

    def send_user_message(thread: str, asked: Any, settings: Any) -> Any:
        skipping[:] = [True] if settings.skip_turn and asked.endpoint == "responses" else []
        made[:] = [payloads.send_user_turn(thread, asked, settings)]
        return message(thread, asked, settings)

    payloads.send_user_message = send_user_message
    AppServer.ask = ask


@variant
def message_into_the_first_conversation() -> None:
    first: list[str] = []

    def change(params: Any, *_: Any) -> None:
        first.append(params["conversationId"])
        params["conversationId"] = first[0]

    in_params("sendUserMessage", change)


@variant
def turn_without_conversation() -> None:
    in_params("sendUserTurn", lambda params, *_: params.pop("conversationId"))


@variant
def one_conversation_for_all() -> None:
    old, kept = AppServer.request, dict[int, Any]()

    async def request(self: AppServer, method: str, params: Any, then: Any = None) -> Any:
        if method != "newConversation":
            return await old(self, method, params, then)
        if id(self) not in kept:
            kept[id(self)] = await old(self, method, params, then)
        elif then is not None:
            then(kept[id(self)])
        return kept[id(self)]

    AppServer.request = request


@variant
def asks_what_no_server_knows() -> None:
    old = AppServer.ask

    async def ask(self: AppServer, method: str, params: Any, then: Any = None) -> Any:
        if method == "sendUserMessage":
            await old(self, "closeConversation", {"conversationId": params["conversationId"]})
        return await old(self, method, params, then)

    AppServer.ask = ask
