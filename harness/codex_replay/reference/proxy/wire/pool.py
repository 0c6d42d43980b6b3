"""The running app-servers of the proxy.

The proxy starts app-servers on demand, as many as the settings allow, and replaces those that have ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from codex_replay.reference.proxy.settings import Settings
from codex_replay.reference.proxy.wire.app_server import AppServer


class Pool:
    """Assigns each request to the app-server with the fewest requests."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._servers: list[AppServer] = []
        self._starting = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def acquire(self) -> AppServer:
        """Return an app-server that can take a request.

        At the end, the caller must call `release` with the app-server. Raises `ProxyError` if no app-server can be started.
        """
        async with self._starting:
            self._sweep()
            fit = [server for server in self._servers if not server.retired]
            server = min(fit, key=lambda one: one.users, default=None)
            if server is None or (server.users and len(fit) < self._settings.children):
                server = await AppServer.start(self._settings)
                self._servers.append(server)
            server.users += 1
            return server

    def release(self, server: AppServer) -> None:
        """Take a server back."""
        server.users -= 1
        self._sweep()

    def running(self) -> int:
        """Return the number of usable app-servers."""
        return sum(not server.retired and not server.dead for server in self._servers)

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the cleanup of a request in the background."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _sweep(self) -> None:
        """Clean up the servers that have ended, and stop the retired servers that no request uses."""
        for server in list(self._servers):
            if server.dead or (server.retired and not server.users):
                self._servers.remove(server)
                self.in_background(server.stop())

    async def close(self) -> None:
        """Stop them all."""
        for server in self._servers:
            self.in_background(server.stop())
        self._servers = []
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
