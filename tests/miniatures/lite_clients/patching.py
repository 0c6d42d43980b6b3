"""How a variant patches the reference: the table of all variants, and a few ways to change what a function returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codex_replay.reference.lite_client import auth, client, reply, tools

Client, Auth, Reply, Tools = client.Client, auth.Auth, reply.Reply, tools.Tools
VARIANTS: dict[str, Callable[[], None]] = {}


def variant(patch: Callable[[], None]) -> Callable[[], None]:
    """Enter a patch into the table, under its own name."""
    VARIANTS[patch.__name__.replace("_", "-")] = patch
    return patch


def after(owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Let `change(result, *arguments)` replace what a function returns."""
    old = getattr(owner, name)
    setattr(owner, name, lambda *given: change(old(*given), *given))


def in_body(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change the body of every request."""
    after(Client, "body", lambda body, *_: change(body))


def in_headers(change: Callable[[dict[str, str], Any], dict[str, str]]) -> None:
    """Change the headers of every request."""
    after(Client, "headers", lambda headers, self: change(headers, self))


def without(mapping: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return a mapping without some keys."""
    return {key: value for key, value in mapping.items() if key not in keys}
