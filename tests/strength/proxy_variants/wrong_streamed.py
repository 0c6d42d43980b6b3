"""Mistakes of the streaming handler alone: a request that is not streamed is served correctly."""

from __future__ import annotations

from typing import Any

from codex_replay.reference.proxy.exchange import Exchange
from tests.strength.proxy_variants.patching import in_params, variant


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
