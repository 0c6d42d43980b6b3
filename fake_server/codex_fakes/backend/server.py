"""The fake Responses backend, as a program.

When the backend is ready, it prints one line of JSON on stdout: {"url": ..., "pid": ..., "token": ...}. A client of the
control API must send the token that the backend prints. The backend ends on SIGTERM or SIGINT. With --exit-with-stdin, the
backend also ends when its stdin ends, so that it does not outlive the program that started it.

    python -m codex_fakes.backend --port 0 [--host 127.0.0.1] [--script F.json] [--exit-with-stdin]
                                  [--cassette F|DIR [--by content|connection] [--over PARTS] [--pace fast]]
                                  [--allow-host NAME] [--max-body N] [--ledger-requests N] [--ledger-bytes N] [--idle-seconds S]
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

from codex_fakes.backend.answers import dump
from codex_fakes.backend.complaints import complain, describe
from codex_fakes.backend.connection import Connection
from codex_fakes.backend.control import PREFIX, control, load_script, refusal
from codex_fakes.backend.exchange import Exchange
from codex_fakes.backend.limits import Limits, Traffic
from codex_fakes.backend.loop.sockets import CannotAccept, Port, Transport
from codex_fakes.backend.loop.tasks import Loop, Task, running_loop
from codex_fakes.backend.loop.waiting import Event, sleep, timeout
from codex_fakes.backend.routes import answer, split_target
from codex_fakes.backend.sessions import Session
from codex_replay.core.text.error_text import error_text
from codex_replay.core.text.numbers import whole_number
from codex_replay.core.wire.web_guard import WebGuard
from codex_replay.protocol.script.script import BadScript, Script

DEFAULT_SESSION = "default"
#: How long clients may take to read the last bytes when the backend ends, in seconds.
LAST = 0.2
LONGEST_SCRIPT = 64 << 20  # bytes: a device goes on without end


class Backend:
    """The fake backend of one process: all its sessions and connections."""

    def __init__(self, script: Script | None = None, limits: Limits | None = None, guard: WebGuard | None = None) -> None:
        self.limits = limits or Limits()
        self.sessions = {DEFAULT_SESSION: Session(DEFAULT_SESSION, script, self.limits)}
        self.traffic = Traffic(self.limits)
        #: What a request to the control API must carry; printed when the backend is ready.
        self.token = os.urandom(16).hex()
        self._guard = guard or WebGuard("127.0.0.1")
        self._accepted = 0
        self._refused: set[str] = set()

    def connect(self, transport: Transport) -> Connection:
        """Return the protocol object for an accepted connection."""
        self._accepted += 1
        return Connection(self.handle, self._accepted, self.traffic, transport)

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request, from the control API or from the session that the path of the request names."""
        request = exchange.request
        name, path, query = split_target(request.target)
        controls = name is None and path.startswith(PREFIX)
        why = self._guard.refusal(request.headers, request.target) or (refusal(exchange, self.token) if controls else None)
        if why is not None:  # no session takes note of it: what may not ask changes nothing
            self._refuse(exchange, why)
            return
        if controls:
            await control(exchange, self.sessions, path.removeprefix(PREFIX), query, self.limits)
            return
        session = self.sessions.get(name or DEFAULT_SESSION)
        if session is None:
            message = f'There is no session "{name}": create it with PUT {PREFIX}sessions/{name} before a client uses it.'
            error = {"message": message, "type": "invalid_request_error", "param": None, "code": "no_session"}
            exchange.respond(404, [("content-type", "application/json")], dump({"error": error}))
            return
        await answer(exchange, session, path, query)

    def _refuse(self, exchange: Exchange, why: str) -> None:
        if why not in self._refused and len(self._refused) < 20:
            self._refused.add(why)
            complain(f"Refused {exchange.request.method} {exchange.request.target}: {why}")
        error = {"message": why, "type": "invalid_request_error", "param": None, "code": "not_allowed"}
        exchange.respond(403, [("content-type", "application/json")], dump({"error": error}))


async def _sweep(backend: Backend) -> None:
    """Close idle connections while the backend runs."""
    while True:
        await sleep(min(5.0, backend.limits.idle / 4))
        backend.traffic.sweep(Loop.time())


async def serve(backend: Backend, host: str, port: int, signals: int, *, exit_with_stdin: bool) -> None:
    """Serve until `signals` (see `_signals`) is readable, and then close every connection and the port."""
    stop = Event()
    running_loop().watch(signals, stop.set)
    listening = Port(host, port, backend.connect)
    name, number = listening.address
    shown = f"[{name}]" if ":" in name else name
    sys.stdout.write(f'{{"url": "http://{shown}:{number}", "pid": {os.getpid()}, "token": "{backend.token}"}}\n')
    sys.stdout.flush()
    if exit_with_stdin:
        _watch_stdin(stop)
    Task(_sweep(backend))
    await stop.wait()
    running_loop().watch(signals, None)
    listening.close()
    for connection in list(backend.traffic.connections):
        connection.close()
    with suppress(TimeoutError):
        async with timeout(LAST):
            while backend.traffic.connections:
                await sleep(0.01)


def _signals() -> int:
    """Return a file descriptor that becomes readable at SIGTERM or SIGINT.

    Python writes to it between two steps of the event loop, whatever the loop waits for.
    """
    woken, wakes = socket.socketpair()
    for end in (woken, wakes):
        end.setblocking(False)
    signal.set_wakeup_fd(wakes.detach())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return woken.detach()


def _watch_stdin(stop: Event) -> None:
    loop, fd = running_loop(), sys.stdin.fileno()

    def readable() -> None:
        if not os.read(fd, 65536):
            loop.watch(fd, None)
            stop.set()

    try:
        loop.watch(fd, readable)
    except (OSError, ValueError):  # a file or /dev/null has no end to wait for
        stop.set()


def _allow_many_files() -> None:
    """Raise the limit of open files as far as allowed, because each open stream needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536 if hard == resource.RLIM_INFINITY else min(65536, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


#: option -> (what it is when it is not given, what it is for); one whose default is a list may be repeated. argparse would be a
#: twentieth of the start.
OPTIONS: dict[str, tuple[Any, str]] = {
    "host": ("127.0.0.1", "the address to listen on (default: loopback only)"),
    "port": ("0", "the port; 0 picks a free one and prints it"),
    "script": (None, "a JSON file: the script of the model"),
    "cassette": ([], "a recording, or a folder of recordings, that answers before the script"),
    "by": ("content", "the way to choose a recorded exchange: content, connection or conversation"),
    "over": (None, "the parts of a request to compare, such as method,path,body,-body.metadata"),
    "pace": ("fast", "fast, recorded, or Nx: N times as fast as recorded"),
    "allow-host": ([], "another host name to accept; other names are refused"),
    "max-body": (str(Limits.body), "the maximum size of a body in bytes, sent and decoded"),
    "ledger-requests": (str(Limits.ledger_requests), "the number of requests in the ledger of a session"),
    "ledger-bytes": (str(Limits.ledger_bytes), "the size of the ledger in bytes"),
    "idle-seconds": (f"{Limits.idle:g}", "seconds until an idle connection is closed"),
    "exit-with-stdin": (False, "end when stdin ends"),
}


def read_options(argv: list[str]) -> dict[str, Any]:
    """Return the command-line options of the backend by name. Raises ValueError with a sentence."""
    given: dict[str, Any] = {
        name: list(default) if isinstance(default, list) else default for name, (default, _) in OPTIONS.items()
    }
    words = iter(argv)
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in OPTIONS:
            known = ", ".join(f"--{name} ({text})" for name, (_, text) in OPTIONS.items())
            raise ValueError(f"{word} is not an option. The options are {known}.")
        if OPTIONS[name][0] is False:
            given[name] = True
            continue
        if not equals and (value := next(words, "")) == "":
            raise ValueError(f"{word} needs a value: {OPTIONS[name][1]}.")
        given[name] = [*given[name], value] if isinstance(OPTIONS[name][0], list) else value
    if whole_number(given["port"]) is None:
        raise ValueError(f"--port {given['port']} is not a number: give a port, or 0 for a free one.")
    for name in ("max-body", "ledger-requests", "ledger-bytes"):
        if not whole_number(given[name]):
            raise ValueError(f"--{name} {given[name]} is not a whole number of 1 or more. It is {OPTIONS[name][1]}.")
    try:
        valid = 0 < float(given["idle-seconds"]) < 1e9
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(f"--idle-seconds {given['idle-seconds']} is not a number of seconds above 0.")
    return given


def _limits(given: dict[str, Any]) -> Limits:
    size = int(given["max-body"])
    return Limits(
        body=size,
        buffered=max(Limits.buffered, 2 * size),
        ledger_requests=int(given["ledger-requests"]),
        ledger_bytes=int(given["ledger-bytes"]),
        idle=float(given["idle-seconds"]),
    )


def main(argv: list[str] | None = None) -> int:
    """Run the program; return its exit status."""
    try:
        given = read_options(sys.argv[1:] if argv is None else argv)
    except ValueError as error:
        return _fail(str(error))
    script = None
    if given["script"] is not None:
        try:
            with open(given["script"], "rb") as file:
                text = file.read(LONGEST_SCRIPT + 1)
            if len(text) > LONGEST_SCRIPT:
                return _fail(f"The script {given['script']} is longer than {LONGEST_SCRIPT >> 20} MB.")
            script = load_script(text)
        except OSError as error:
            return _fail(f"The script {given['script']} cannot be read: {error.strerror}.")
        except BadScript as error:
            return _fail(f"{given['script']}: {error}")
    backend = Backend(script, _limits(given), WebGuard(given["host"], given["allow-host"]))
    if given["cassette"]:
        from codex_fakes.backend.replay.replay import BadReplay, make_replay  # only for recordings

        over = given["over"].split(",") if given["over"] else None
        wanted = {"path": given["cassette"], "by": given["by"], "over": over, "pace": given["pace"]}
        session = backend.sessions[DEFAULT_SESSION]
        try:
            session.replay = make_replay(wanted, session.gate)
        except BadReplay as error:
            return _fail(str(error))
    _allow_many_files()
    gc.freeze()  # what is loaded stays; and a request makes many objects and no cycles, so look for them seldom
    gc.set_threshold(50_000, 20, 50)
    gc.enable()
    try:
        serving = serve(backend, given["host"], int(given["port"]), _signals(), exit_with_stdin=given["exit-with-stdin"])
        Loop(_report).run(serving)
    except (OSError, OverflowError, UnicodeError) as error:  # the last: a host that is no name at all
        where = f"{given['host']} port {given['port']}"
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error_text(error)
        return _fail(f"The backend cannot listen on {where}: {why}. Choose another port, or 0 for a free one.")
    return 0


def _report(error: Exception) -> None:
    """Report an exception in the event loop, which goes on."""
    if isinstance(error, CannotAccept):
        # Not redacted, because no file is free to load the redactor from.
        complain(f"{error} Close connections, or allow more open files (`ulimit -n`) and restart the backend.", foreign=False)
        return
    complain(f"The backend failed: {describe(error)}. This is a bug of codex-replay: please report it.")


def _fail(text: str) -> int:
    complain(text)
    return 2
