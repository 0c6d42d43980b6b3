"""A process of `codex app-server`: JSON-RPC over its stdin and stdout.

One task reads all messages of the server. A response of the server goes to the request that waits for it. A notification
goes to the inbox of its thread, and is dropped if the thread has no inbox. A request of the server is answered immediately,
because the turn hangs without an answer. The only exception is the call of a client's tool (`item/tool/call`): it goes to
the inbox of its thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from codex_replay.reference.proxy.errors import ProxyError, app_server_ended, too_slow
from codex_replay.reference.proxy.settings import Settings
from codex_replay.reference.proxy.wire.json_text import for_server, loads

TOOL_CALL = "item/tool/call"
#: The answer to a request that has no client to ask.
ANSWERS: dict[str, Any] = {
    "execCommandApproval": {"decision": "denied"},
    "applyPatchApproval": {"decision": "denied"},
    "item/commandExecution/requestApproval": {"decision": "decline"},
    "item/fileChange/requestApproval": {"decision": "decline"},
    "item/tool/requestUserInput": {"answers": {}},
}
#: How long a server may take to end once its stdin has ended, in seconds; one with a pending request never does.
GRACE = 1.0
CHUNK = 1 << 16


def no_tool(why: str, experimental: bool) -> dict[str, Any]:
    """Return the reply to a tool call of the server: the reply states that the tool was not run, and the reason.

    For versions with the experimental capability, the reply contains a list; for earlier versions, it contains a text.
    """
    output = {"contentItems": [{"type": "inputText", "text": why}]} if experimental else {"output": why}
    return {**output, "success": False}


class Message(NamedTuple):
    """A notification or a request (`id` is not None) of the server."""

    method: str
    params: dict[str, Any]
    id: Any = None


Inbox = asyncio.Queue[Message | None]


class AppServer:
    """A running app-server.

    `users` is the number of client requests that use the server. A server that is `retired` gets no new requests.
    """

    def __init__(self, process: asyncio.subprocess.Process, settings: Settings) -> None:
        self._process = process
        self._timeout = settings.rpc_timeout
        self._experimental = settings.experimental
        self._waiting: dict[int, tuple[asyncio.Future[Any], Callable[[Any], None] | None]] = {}
        self._inboxes: dict[str, Inbox] = {}
        self._next = 1
        self._sending = asyncio.Lock()
        self._answers: set[asyncio.Task[None]] = set()
        self._reader = asyncio.create_task(self._read())
        self.users = 0
        self.retired = False
        self.dead = False

    @classmethod
    async def start(cls, settings: Settings) -> AppServer:
        """Start the program and initialize the connection.

        Raises `ProxyError` if the program does not start or does not answer.
        """
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(settings.codex, "app-server", stdin=pipe, stdout=pipe)
        except OSError as error:
            raise app_server_ended(f"{settings.codex} cannot be started: {error.strerror}.") from None
        server = cls(process, settings)
        try:
            client = {"name": "codex-replay-proxy", "title": "reference proxy", "version": "1.0.0"}
            able = {"capabilities": {"experimentalApi": True}} if settings.experimental else {}
            await server.request("initialize", {"clientInfo": client, **able})
            await server.notify("initialized")
        except BaseException:
            await server.stop()
            raise
        return server

    # -- out -------------------------------------------------------------------------------------------------------------

    async def request(self, method: str, params: Any, then: Callable[[Any], None] | None = None) -> Any:
        """Send a request to the app-server, and return the result.

        The function `then` gets the result before the next line of the server is read. Raises `ProxyError` if no result comes.
        """
        return await self.answer_of(method, await self.ask(method, params, then))

    async def ask(self, method: str, params: Any, then: Callable[[Any], None] | None = None) -> asyncio.Future[Any]:
        """Send a request, and return the future of its result. Raises `ProxyError` if the server has ended."""
        number, self._next = self._next, self._next + 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (future, then)
        future.add_done_callback(lambda done: self._forget(number, done))
        await self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return future

    def _forget(self, number: int, future: asyncio.Future[Any]) -> None:
        self._waiting.pop(number, None)
        if not future.cancelled():
            future.exception()  # the result may stay unread

    async def answer_of(self, method: str, future: asyncio.Future[Any]) -> Any:
        """Wait for the result of a request to the app-server.

        After the time limit, retire the server: it gets no new requests. Raises `ProxyError` if no result comes.
        """
        try:
            async with asyncio.timeout(self._timeout):
                return await future
        except TimeoutError:
            self.retired = True
            raise too_slow(f"The app-server did not answer {method} within {self._timeout:g} s.") from None

    async def notify(self, method: str) -> None:
        """Send a notification without parameters. Raises `ProxyError`."""
        await self._send({"jsonrpc": "2.0", "method": method})

    async def reply(self, number: Any, result: Any) -> None:
        """Answer the request `number` of the server. Raises `ProxyError` if the server has ended."""
        await self._send({"jsonrpc": "2.0", "id": number, "result": result})

    async def _send(self, value: Any) -> None:
        if self.dead:
            raise app_server_ended("The app-server has ended.")
        stdin = self._process.stdin
        assert stdin is not None
        try:
            async with asyncio.timeout(self._timeout), self._sending:
                stdin.write(for_server(value))
                await stdin.drain()
        except TimeoutError:
            self.retired = True
            raise too_slow(f"The app-server has not read its input for {self._timeout:g} s.") from None
        except (OSError, RuntimeError):
            raise app_server_ended("The app-server has closed its input.") from None

    # -- in --------------------------------------------------------------------------------------------------------------

    def open_inbox(self, thread: str) -> Inbox:
        """From now on, collect the messages for a thread in an inbox. The inbox gets None when the server has ended."""
        inbox: Inbox = asyncio.Queue()
        self._inboxes[thread] = inbox
        if self.dead:
            inbox.put_nowait(None)
        return inbox

    def close_inbox(self, thread: str) -> None:
        """From now on, drop the messages for a thread."""
        self._inboxes.pop(thread, None)

    async def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        pieces: list[bytes] = []
        try:
            while chunk := await stdout.read(CHUNK):
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    self._line(b"".join([*pieces, line]))
                    pieces = []
                pieces.append(rest)
        finally:
            self.dead = True
            for future, _ in list(self._waiting.values()):
                if not future.done():
                    future.set_exception(app_server_ended("The app-server ended before it answered."))
            for inbox in self._inboxes.values():
                inbox.put_nowait(None)

    def _line(self, line: bytes) -> None:
        try:
            message = loads(line)
        except (ValueError, RecursionError):
            print(f"The app-server sent a line that is not JSON: {line[:200]!r}", file=sys.stderr)
            return
        if not isinstance(message, dict):
            return
        if "method" not in message:
            self._answered(message)
            return
        params = message.get("params")
        found = Message(str(message["method"]), params if isinstance(params, dict) else {}, message.get("id"))
        inbox = self._inboxes.get(str(found.params.get("threadId") or found.params.get("conversationId")))
        if inbox is not None and (found.id is None or found.method == TOOL_CALL):
            inbox.put_nowait(found)
        elif found.id is not None:
            task = asyncio.create_task(self._answer(found))
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)

    async def _answer(self, asked: Message) -> None:
        with contextlib.suppress(ProxyError):  # it has ended, or reads nothing: that is noticed elsewhere
            if asked.method == TOOL_CALL:
                await self.reply(asked.id, no_tool("This tool cannot be used here.", self._experimental))
            elif asked.method in ANSWERS:
                await self.reply(asked.id, ANSWERS[asked.method])
            else:
                error = {"code": -32601, "message": f"{asked.method} is not a method that this proxy knows."}
                await self._send({"jsonrpc": "2.0", "id": asked.id, "error": error})

    def _answered(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        future, then = self._waiting.pop(number, (None, None)) if isinstance(number, int) else (None, None)
        if future is None or future.done():
            return
        if "error" in message:
            error = message["error"]
            text = error.get("message") if isinstance(error, dict) else error
            future.set_exception(ProxyError(502, f"The app-server refused: {text}", code="app_server_refused"))
            return
        if then is not None:
            then(message.get("result"))
        future.set_result(message.get("result"))

    # -- the end ---------------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """End the program: close its stdin, and kill it if it does not exit."""
        self.retired = True
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(GRACE):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        # a child of the server may keep the pipe open
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await self._reader
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                await self._process.stdin.wait_closed()
