"""How a variant patches the proxy: the registry of patches, and a few ways to change what a function takes or returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codex_replay.reference.proxy.asking import payloads
from codex_replay.reference.proxy.wire.app_server import AppServer

Params = dict[str, Any]
PATCHES: dict[str, Callable[[], None]] = {}
#: The functions that make the payloads, by method.
BUILDERS = {
    "newConversation": "new_conversation",
    "sendUserTurn": "send_user_turn",
    "sendUserMessage": "send_user_message",
    "thread/start": "thread_start",
    "turn/start": "turn_start",
}


def variant(patch: Callable[[], None]) -> Callable[[], None]:
    """Enter a patch under its own name, `no_jsonrpc` as `no-jsonrpc`."""
    PATCHES[patch.__name__.replace("_", "-")] = patch
    return patch


def after(owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Let `change(result, *arguments)` replace what a function returns."""
    old = getattr(owner, name)
    setattr(owner, name, lambda *given: change(old(*given), *given))


def in_params(method: str, change: Callable[..., Any]) -> None:
    """Change the params of a method: `change(params, asked, settings)` alters them in place (its result is not looked at)."""

    def changed(params: Params, *given: Any) -> Params:
        if method in ("sendUserTurn", "sendUserMessage", "turn/start"):
            given = given[1:]  # the id of the conversation or thread
        change(params, *given)
        return params

    after(payloads, BUILDERS[method], changed)


def put(method: str, **fields: Any) -> None:
    """Set fields of a payload whatever was asked."""
    in_params(method, lambda params, *_: params.update(fields))


def drop(method: str, *fields: str) -> None:
    """Leave fields of a payload out."""
    in_params(method, lambda params, *_: [params.pop(field, None) for field in fields])


def in_call(change: Callable[[Params], Params]) -> None:
    """Change what is written to the app-server, the envelope included."""
    old = AppServer._send

    async def changed(self: AppServer, value: Params) -> None:
        await old(self, change(dict(value)) if "params" in value else value)

    AppServer._send = changed


def replaced(text: str, old: str, new: str) -> str:
    """The text with `old` as `new`; a patch that finds nothing to change is a mistake of ours."""
    if old not in text:
        raise AssertionError(f"there is no {old!r} to be changed")
    return text.replace(old, new)
