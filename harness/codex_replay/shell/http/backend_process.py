"""Run the fake Responses backend as a program, and call its control API.

The backend is a separate process, which is contacted over a socket, like any other server. The backend ends when its stdin
ends, so it also ends when the process that started it is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any
from urllib.parse import quote, urlsplit

from codex_replay.core.text.error_text import error_text
from codex_replay.shell.http.control_call import BadAnswer, call
from codex_replay.shell.process.programs import program

PREFIX = "/_codex_replay/sessions/"
#: The session of a client whose URL has no prefix.
DEFAULT_SESSION = "default"


def backend_command() -> list[str]:
    """Return the command that starts the fake backend, without its options."""
    return program("codex_fakes.backend.__main__", using=("httptools", "brotli", "jiter", "zstandard"))


def _unnamed_file() -> IO[bytes]:
    """Return an open file for the stderr of the backend.

    A pipe would block the backend while nobody reads it. `tempfile` takes a fifth of the start of `codex-replay serve` to import.
    """
    if hasattr(os, "memfd_create"):  # Linux
        return open(os.memfd_create("stderr"), "w+b")
    import tempfile

    return tempfile.TemporaryFile()


class BackendError(RuntimeError):
    """The backend did not start, or refused a request. The message of a `BackendError` is a sentence with the reason."""


class BackendSession:
    """One isolated conversation with the fake backend: its own script, ledger (list of received requests), tokens and gates.

    A client gets URLs that begin with `url`: `{url}/v1` is the API base URL, `{url}/backend-api/` is the ChatGPT base URL, and
    `{url}/oauth/token` is the token URL. The `url` of the session "default" has no path, so its request paths are exactly those
    of the API.
    """

    def __init__(self, process: BackendProcess, name: str) -> None:
        self._process = process
        self.name = name
        #: When the session began, by time.monotonic(): the ledger counts its seconds from there.
        self.started = time.monotonic()
        self.url = process.url if name == DEFAULT_SESSION else f"{process.url}/s/{quote(name, safe='')}"
        self._path = PREFIX + quote(name, safe="")
        #: The number of the last request that the ledger had let go when it was last asked.
        self.dropped = 0

    def script(self, script: object) -> None:
        """Set another script for the session, which begins with its first turn. The ledger of the session stays unchanged.

        Raises `BackendError` if `script` is not a valid script.
        """
        __tracebackhide__ = True
        self._process.call("PUT", self._path + "/script", script)

    def cassette(
        self,
        path: Path | Sequence[Path],
        *,
        by: str = "content",
        over: Sequence[str] | None = None,
        pace: str = "fast",
        hold: Sequence[int] = (),
    ) -> list[str]:
        """Answer requests from recordings (files or folders), and use the script only for requests without a recorded answer.

        Return a sentence for each recording that is incomplete, because it was cut short.

        `by` is "content", "connection" or "conversation" (see docs/replaying.md). `over` lists the parts of a request that
        are compared. `pace` is fast, recorded or Nx (see docs/replaying.md). `hold` lists numbers of frames in one
        recording, before which an answer must wait. For example, `hold=[43]` stops the answer before frame 43 until
        `release("frame 43")` is called. If the session has no script, a request without a recorded answer gets the status 501.
        Raises `BackendError` if a recording cannot be played.
        """
        paths = [path] if isinstance(path, Path) else list(path)
        wanted: dict[str, Any] = {"path": [str(one.absolute()) for one in paths], "by": by, "pace": pace}
        if over is not None:
            wanted["over"] = list(over)
        if hold:
            wanted["hold"] = list(hold)
        notes: list[str] = self._process.call("PUT", self._path + "/cassette", wanted, seconds=60)["notes"]
        return notes

    def unused_frames(self) -> list[dict[str, Any]]:
        """Return the recorded requests that no client has sent.

        Each returned request has the keys cassette, frame, conn and request.
        """
        found: list[dict[str, Any]] = self._process.call("GET", self._path + "/ledger?since=999999999")["unused_frames"]
        return found

    def ledger(self, requests: int = 0, seconds: float = 10.0, *, since: int = 0, redact: bool = False) -> list[dict[str, Any]]:
        """Return all requests that the session has received so far.

        With `since`, return only the requests after the request number `since`.

        With `requests`, wait at most `seconds` until the session has answered `requests` requests. With `redact`, secrets
        in the requests are replaced. The ledger keeps at most the last 10,000 requests, and at most 64 MB. `dropped` is the
        number of the last request that the ledger has dropped. Each request has these keys: n, method, path, headers, body
        (decoded), raw_length, status, answer, turn, recorded (cassette and frame), sentence, end. The key "answer" names
        the source of the answer: cassette, turn, default, rule, expect, miss or route. The key "sentence" has the reason of
        a refusal. The key "end" says how the answer ended: end, cut, reset or gone; it is None while the answer is open.
        """
        return self._requests(f"requests={requests}&seconds={seconds}&since={since}&redact={int(redact)}", seconds)

    def ended(self, since: int, seconds: float) -> list[dict[str, Any]]:
        """Return the requests after number `since` whose answers have ended, up to the first request with an open answer.

        If no request after `since` has an ended answer, wait at most `seconds` for one. The requests have the same form as
        in the method `ledger`; their secrets are replaced. If there are many ended requests, one call returns only some of
        them.
        """
        return self._requests(f"ended=1&seconds={seconds}&since={since}", seconds)

    def _requests(self, query: str, seconds: float) -> list[dict[str, Any]]:
        answer = self._process.call("GET", f"{self._path}/ledger?{query}", seconds=seconds)
        self.dropped = answer.get("dropped", 0)
        found: list[dict[str, Any]] = answer["requests"]
        return found

    def unused_turns(self) -> list[int]:
        """Return the indexes of the turns in the script that no request has used."""
        found: list[int] = self._process.call("GET", self._path + "/ledger?since=999999999")["unused_turns"]
        return found

    def problems(self, but: Sequence[int] = ()) -> list[str]:
        """Return a sentence for each request that a rule or an expectation refused, or for which the script had no turn.

        If a client retries and gets the same sentence several times, the sentence is listed once with the number of
        refusals. Refusals with an HTTP status in `but` are expected, and are omitted.
        """
        prefix = urlsplit(self.url).path
        lines = (
            f"{e['method']} {e['path'].removeprefix(prefix)}: {e['sentence']}"
            for e in self.ledger()
            if e["sentence"] and e["status"] not in but
        )
        return [line if times == 1 else f"{line} ({times} times)" for line, times in Counter(lines).items()]

    def next_asked(self, seconds: float) -> dict[str, Any] | None:
        """Return the next request that the backend passes to this program, because the script has `"otherwise": "ask"`.

        Return None if no request comes within `seconds`. The returned request has the form of an entry of the ledger. If
        the request continues a conversation by an id, the key "earlier" has the items of the conversation. To answer the
        request, call `answer_asked` with the value of its key `n`.
        """
        found = self._process.call("GET", f"{self._path}/asked?seconds={seconds}", seconds=seconds)
        return {**found["request"], "earlier": found["earlier"]} if found["n"] is not None else None

    def answer_asked(self, n: int, turn: object) -> None:
        """Answer the request `n` with a turn of a script, or refuse it with {"refused": "the reason"}.

        Raises `BackendError` if the backend refuses the answer.
        """
        self._process.call("PUT", f"{self._path}/asked/{n}", turn)

    def wait_at_gate(self, gate: str, seconds: float = 10.0) -> bool:
        """Wait at most `seconds` until an answer of the backend has reached the gate `gate`.

        Return True if an answer waits at the gate.
        """
        path = f"{self._path}/gates/{quote(gate, safe='')}?seconds={seconds}"
        return bool(self._process.call("GET", path, seconds=seconds)["reached"])

    def release(self, gate: str) -> None:
        """Open a gate, so that the answer that waits at it continues. An answer that reaches an open gate does not wait."""
        self._process.call("POST", f"{self._path}/gates/{quote(gate, safe='')}")

    def close(self) -> None:
        """Forget the session."""
        self._process.call("DELETE", self._path)


class BackendProcess:
    """A context manager that runs the fake backend in a separate process group. `url` is the address of the backend."""

    def __init__(
        self,
        script: Path | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        command: Sequence[str] | None = None,
        options: Sequence[str] = (),
        seconds: float = 20.0,
        env: Mapping[str, str] | None = None,
    ) -> None:
        argv = [*(command or backend_command()), "--host", host, "--port", str(port)]
        argv += ["--exit-with-stdin", *(["--script", str(script)] if script is not None else []), *options]
        self._stderr = _unnamed_file()
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, start_new_session=True, env=env
        )
        try:
            ready = self._ready(seconds)
        except BaseException:
            self.close()
            raise
        self.url: str = ready["url"]
        self.pid: int = ready["pid"]
        #: The headers of a request to the control API; "" if the program has the fake's control API without a token.
        self.token: str = ready.get("token", "")
        parts = urlsplit(self.url)
        self._address = (parts.hostname or host, parts.port or port)

    def _ready(self, seconds: float) -> dict[str, Any]:
        stdout = self._process.stdout
        assert stdout is not None
        if not select.select([stdout], [], [], seconds)[0]:
            raise BackendError(f"The backend was not ready after {seconds:g} s.")
        line = stdout.readline()
        try:
            found: dict[str, Any] = json.loads(line)
        except ValueError:
            self._process.kill()
            self._process.wait()
            message = self.stderr().strip() or f"it printed {line!r}"
            raise BackendError(
                message if message.startswith("The backend ") else f"The backend did not start: {message}"
            ) from None
        return found

    def session(self, name: str, script: object = None) -> BackendSession:
        """Create a session with the name `name`, or restart the existing session.

        `script` is a script as JSON values (or a list of turns), or None for the default replies. Raises `BackendError` with the
        place of the error if `script` is not a valid script.
        """
        self.call("PUT", PREFIX + quote(name, safe=""), script)
        return BackendSession(self, name)

    def ledger(self, name: str = DEFAULT_SESSION) -> list[dict[str, Any]]:
        """Return all requests of a session so far (see `BackendSession.ledger`)."""
        return BackendSession(self, name).ledger()

    def running(self) -> bool:
        """Return True if the process has not ended."""
        return self._process.poll() is None

    def stderr(self) -> str:
        """Return the text that the backend has written to stderr so far.

        If the backend had no internal error, the text is empty.
        """
        size = os.fstat(self._stderr.fileno()).st_size
        return os.pread(self._stderr.fileno(), min(size, 65536), max(0, size - 65536)).decode("utf-8", "replace")

    def call(self, method: str, path: str, value: object = None, *, seconds: float = 10.0) -> dict[str, Any]:
        """Call the backend's control API. Raises `BackendError` if the backend refuses the call or has ended."""
        __tracebackhide__ = True
        body = b"" if value is None else json.dumps(value, ensure_ascii=False).encode()
        try:
            status, text = call(*self._address, method, path, self.token, body, seconds + 20)
            answer: dict[str, Any] = json.loads(text)
        except (OSError, BadAnswer, ValueError, RecursionError) as error:
            raise BackendError(f"The backend at {self.url} did not answer {method} {path}: {error_text(error)}.") from error
        if status != 200:
            raise BackendError(answer["error"]["message"])
        return answer

    def close(self) -> None:
        """End the backend process and its process group. After a call of `close`, no process, pipe or port is left."""
        process = self._process
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        self._stderr.close()

    def __enter__(self) -> BackendProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
