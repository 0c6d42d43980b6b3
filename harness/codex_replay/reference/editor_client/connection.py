"""Start and stop the server process, encode and decode JSON-RPC, and pass the server's messages to the session.

Only `write` and `stop` block; the loop in `__main__` calls `receive` when the server's stdout is readable. Only b"\\n" ends
a line, and a line is decoded only when it is complete. Therefore neither a chunk border nor an unusual character in a
string splits a line.
"""

from __future__ import annotations

import os

from codex_replay.reference.editor_client.process import Process
from codex_replay.reference.json_text import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Message = dict[str, Any]
    Then = Callable[[Any], None]
    Failed = Callable[[str], None]

METHOD_NOT_FOUND = -32601
#: How long a server may take to end once its stdin has ended, in seconds.
GRACE = 5.0


class Disconnected(Exception):
    """The server has exited, or could not be started. The message of the exception has the reason."""


class Connection:
    """A connection to one process of the app-server.

    `on_message` is the function that gets the notifications and requests of the server. Raises `Disconnected` if the server
    cannot be started.
    """

    def __init__(self, command: Sequence[str], on_message: Callable[[Message], None]) -> None:
        self._on_message = on_message
        self._waiting: dict[int, tuple[Then, Failed]] = {}
        self._next_id = 1
        self._pieces: list[bytes] = []
        try:
            self._process = Process(command)
        except OSError as error:
            raise Disconnected(f"{command[0]} cannot be started ({error.strerror}).") from None

    def fileno(self) -> int:
        """The file descriptor of the server's output, on which the caller waits."""
        return self._process.stdout

    # -- out -------------------------------------------------------------------------------------------------------------

    def request(self, method: str, params: Any, then: Then, failed: Failed) -> None:
        """Send a request to the server.

        When the reply comes, `then` is called with the result, or `failed` with the error message. Raises `Disconnected` if the
        server has ended.
        """
        asked = self._next_id
        self._next_id += 1
        self._waiting[asked] = (then, failed)
        self.write({"id": asked, "method": method, "params": params})

    def notify(self, method: str) -> None:
        """Send a notification. Raises `Disconnected`."""
        self.write({"method": method})

    def answer(self, request: Message, result: Any) -> None:
        """Answer a request of the server with `result`. Raises `Disconnected` if the server has ended."""
        self.write({"id": request["id"], "result": result})

    def refuse(self, request: Message) -> None:
        """Answer an unknown request of the server with an error. Raises `Disconnected` if the server has ended."""
        error = {"code": METHOD_NOT_FOUND, "message": f"Method not found: {request['method']}"}
        self.write({"id": request["id"], "error": error})

    def write(self, message: Message) -> None:
        """Write one JSON-RPC message to the server, as one line. Raises `Disconnected` if the server has ended."""
        view = memoryview(self.encode(message))
        try:
            while view:
                view = view[os.write(self._process.stdin, view) :]
        except OSError:
            raise Disconnected(self._epitaph()) from None

    def encode(self, message: Message) -> bytes:
        """Return the line for a JSON-RPC message."""
        return dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"

    # -- in --------------------------------------------------------------------------------------------------------------

    def receive(self) -> None:
        """Read from the server once, and process each complete message.

        Raises `Disconnected` at the end of the server's stdout.
        """
        data = os.read(self._process.stdout, 1 << 16)
        if not data:
            raise Disconnected(self._epitaph())
        for line in self.lines(data):
            self._line(line)

    def lines(self, data: bytes) -> list[bytes]:
        """Return the lines of the server that `data` completes; keep the rest."""
        self._pieces.append(data)
        if b"\n" not in data:
            return []
        *whole, rest = b"".join(self._pieces).split(b"\n")
        self._pieces = [rest]
        return whole

    def _line(self, line: bytes) -> None:
        message = self.decode(line)
        if message is None:
            return
        if "method" in message:
            self._on_message(message)
        elif "id" in message:
            self.answered(message)

    def decode(self, line: bytes) -> Message | None:
        """Return the JSON-RPC message in a line, or None for an invalid line, which the client ignores."""
        try:
            message = loads(line)
        except ValueError:
            return None
        return message if isinstance(message, dict) else None

    def answered(self, reply: Message) -> None:
        """Call the function that waits for a reply of the server."""
        asked = reply["id"]
        if isinstance(asked, bool) or not isinstance(asked, int) or asked not in self._waiting:
            return
        then, failed = self._waiting.pop(asked)
        if "error" in reply:
            error = reply["error"]
            failed(str(error.get("message", error)) if isinstance(error, dict) else str(error))
        else:
            then(reply.get("result"))

    # -- the end ---------------------------------------------------------------------------------------------------------

    def _epitaph(self) -> str:
        status = self._process.wait(GRACE)
        if status is None:
            return "codex has closed its output."
        return f"codex has ended (exit status {status})." if status >= 0 else f"codex was killed (signal {-status})."

    def stop(self, *, patient: bool) -> None:
        """End the server: close its stdin and, if that is not enough, terminate the server.

        After a call of `stop`, no child process is left. A server that waits for an approval does not end when its stdin is
        closed: it is always terminated.
        """
        self._process.close()
        for end in (None, self._process.terminate, self._process.kill)[not patient :]:
            if end is not None:
                end()
            if self._process.wait(GRACE) is not None:
                return
