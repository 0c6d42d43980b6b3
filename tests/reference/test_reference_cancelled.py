"""The reference proxy ends the work for a client that has gone, even if a message of the app-server comes at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from codex_replay.reference.proxy.asking.normalise import chat_request
from codex_replay.reference.proxy.exchange import Exchange
from codex_replay.reference.proxy.settings import Settings
from codex_replay.reference.proxy.wire.app_server import AppServer, Inbox, Message

SETTINGS = Settings(profile="works-on-0.92")


class StandIn:
    """An app-server that answers each call at once, and a pool that has only this one."""

    dead = retired = False

    def __init__(self) -> None:
        self.inbox: Inbox = asyncio.Queue()

    async def acquire(self) -> StandIn:
        return self

    def open_inbox(self, thread: str) -> Inbox:
        return self.inbox

    async def request(self, method: str, params: Any, then: Callable[[Any], None] | None = None) -> Any:
        result = {"thread": {"id": "t"}, "turn": {"id": "1"}}
        if then is not None:
            then(result)
        return result


async def followed() -> None:
    server: Any = StandIn()
    asked = chat_request({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, SETTINGS)
    exchange = Exchange(asked, SETTINGS, server)

    async def follow() -> None:
        async for _ in exchange.events():
            pass

    task = asyncio.create_task(follow())
    await asyncio.sleep(0.01)  # it waits for a message now
    server.inbox.put_nowait(Message("item/agentMessage/delta", {"threadId": "t", "turnId": "1", "delta": "word"}))
    await until_read(server.inbox)
    task.cancel()
    await task


async def until_read(inbox: Inbox) -> None:
    """Let the loop run until the message is taken, and no step further."""
    while not inbox.empty():
        await asyncio.sleep(0)


async def answered() -> None:
    server: Any = SimpleNamespace(_timeout=10, retired=False)
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(AppServer.answer_of(server, "turn/start", future))
    await asyncio.sleep(0)
    future.set_result({"turn": {"id": "1"}})
    task.cancel()
    await task


async def limited(waiting: Callable[[], Any]) -> None:
    async with asyncio.timeout(3):
        await waiting()


@pytest.mark.parametrize("waiting", [followed, answered])
def test_a_message_at_the_same_moment_does_not_undo_the_cancellation(waiting: Callable[[], Any]) -> None:
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(limited(waiting))
