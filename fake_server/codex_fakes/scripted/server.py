"""The scripted app-server: it answers any client in the same way as a real Codex whose model follows the script.

    FAKE_CODEX_SCRIPT     The script of the model, in the backend's format. Default: one short, constant reply.
    FAKE_CODEX_LEDGER     A file that gets a line of JSON for each request that the model would get.
    FAKE_CODEX_VERSION    The Codex version to imitate: 0.92.0 (default), or another version with a table (docs/fake-codex.md).
    FAKE_CODEX_STATE      A folder that keeps the threads and the script's position between processes.
    FAKE_CODEX_PACE       fast (default), recorded, Nx, burst (see `Session.gap`), or race:SEED (see `race`).

The program fake-codex loads this module at start-up. Only the answer to initialize is in this module; all other modules are
loaded after the client has got this answer.
"""

from __future__ import annotations

from posix import getcwd, uname
from time import monotonic

from codex_fakes.stdio.loop import Ended, Stdio, report_unreadable, write_out
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.core.wire.jsonrpc import kind
from codex_replay.protocol.versions import DEFAULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from codex_fakes.scripted.race import Race
    from codex_fakes.scripted.session import Session
    from codex_fakes.scripted.state.store import Store


_FAST = 0.05  # a turn takes less than a quarter of the real one's time, and a client that yields once misses nothing


class ScriptedServer(Stdio):
    """One run of fake-codex that answers from a script, configured by the `FAKE_CODEX_*` variables and the `-c` options of the
    command line.

    Raises `ValueError` for an invalid setting or script, `OSError` for a file that cannot be opened.
    """

    def __init__(self, environ: Mapping[str, str], overrides: list[tuple[str, str]]) -> None:
        super().__init__(environ)
        self._environ, self._overrides = environ, overrides
        self._session: Session | None = None
        self.version = environ.get("FAKE_CODEX_VERSION") or DEFAULT
        if self.version != DEFAULT:
            from codex_replay.protocol.data_tables import load, unavailable

            if missing := unavailable("turn", self.version):
                raise ValueError(f"FAKE_CODEX_VERSION: {missing}")
            self.keeps_numbers = load("turn", self.version)["traits"].get("keepsNumbers", False)
        self.experimental = False  # whether the client has the capability experimentalApi
        self.unwanted: frozenset[str] = frozenset()  # notifications that the client does not want
        self.user_agent = ""
        self._client: dict[str, Any] | None = None
        self._methods: dict[str, str] | None = None
        self._race: Race | None = None
        path = environ.get("FAKE_CODEX_SCRIPT")
        self._text: bytes | None = None
        if path:
            from codex_fakes.model.script_file import read_script

            self._text = read_script(path)  # an unusable file is reported at once
        self._store: Store | None = None
        if environ.get("FAKE_CODEX_STATE"):
            from codex_fakes.scripted.state.store import Store

            self._store = Store(environ["FAKE_CODEX_STATE"], self.version)
        self.gaps = _FAST  # the part of the real server's gaps that this one leaves
        self._held = 0.0  # nothing is written before this time (monotonic seconds)
        pace = environ.get("FAKE_CODEX_PACE") or "fast"
        if pace.startswith("race:"):
            from codex_fakes.scripted.race import Race

            self._race, self.gaps = Race(pace[5:], self.version), 0.0
        elif pace != "fast":
            self.gaps = _gaps(pace)
        if environ.get("FAKE_CODEX_CAPTURE"):
            from codex_fakes.stdio.capture import open_capture

            self.capture = open_capture(environ["FAKE_CODEX_CAPTURE"], self.version)

    def line(self, live: Frame) -> None:
        """Process one line of the client."""
        value = live.value
        if self._race is not None:
            self._race.hear(live.raw)
        if self._client is None and _is_plain_initialize(value):
            self._initialize(value)
            return
        from codex_fakes.scripted.state.form import malformed, misread
        from codex_replay.protocol.refusals import INVALID_REQUEST, is_message, load_methods, refusal

        if not is_message(value):
            report_unreadable(live)
            return
        sort = kind(value)
        if sort == "request":
            self._methods = self._methods or load_methods(self.version)
            refused = malformed(value, self._methods) or self._unable(value)
            refused = refused or refusal(value, self._client is not None, self._methods)
            if refused is None and value["method"] == "initialize":
                params = value["params"]
                client = params["clientInfo"] if type(params) is dict else params[0]
                name = client["name"]
                if _is_header(name):
                    self._initialize(value if type(params) is dict else {**value, "params": {"clientInfo": client}})
                    return
                refused = f"Invalid clientInfo.name: '{name}'. Must be a valid HTTP header value."
            if refused == "Not initialized":
                refused = misread(value, self.version) or refused  # the params are read first
            if refused is not None:
                self.answer_error(value["id"], {"code": INVALID_REQUEST, "message": refused})
                return
        if sort != "notification":
            self.session.receive(value)
            self._go_on(quiet=False)

    def _unable(self, request: dict[str, Any]) -> str | None:
        """Return the error for an initialize request whose capabilities have a wrong form, or None."""
        if request["method"] != "initialize" or self.version == DEFAULT:
            return None
        from codex_fakes.scripted.state.form import misread

        return misread(request, self.version)

    def _initialize(self, request: dict[str, Any]) -> None:
        self._client = client = request["params"]["clientInfo"]
        system = uname()
        about = f"{client['name']}; {client['version']}".strip()
        kernel = f"{system.sysname} {system.release.partition('-')[0]}; {system.machine}"
        agent = f"{client['name']}/{self.version} ({kernel}) unknown ({about})"
        self.user_agent = agent
        if self.version == DEFAULT:
            self.write_out({"id": request["id"], "result": {"userAgent": agent}})
            return
        from codex_fakes.scripted.handshake import handshake

        able = request["params"].get("capabilities")
        able = able if type(able) is dict else {}
        self.experimental = able.get("experimentalApi") is True
        self.unwanted = frozenset(able.get("optOutNotificationMethods") or ())
        result, notifications = handshake(agent, self._home, self.version)
        self.write_out({"id": request["id"], "result": result})
        for notification in notifications:
            if notification["method"] not in self.unwanted:
                self.write_out(notification)

    @property
    def _home(self) -> str:
        return self._environ.get("CODEX_HOME") or self.home + "/.codex"

    @property
    def session(self) -> Session:
        """Return the session: the threads and the model. The session is created when it is first needed."""
        if self._session is None:
            from codex_fakes.scripted.session import Session

            if self.version == DEFAULT:
                from codex_fakes.scripted.methods.table import handler_of
            else:
                from codex_fakes.scripted.methods.paginated import handler_of
            script, ledger = self._environ.get("FAKE_CODEX_SCRIPT"), self._environ.get("FAKE_CODEX_LEDGER")
            try:
                self._session = Session(
                    self,
                    handler_of,
                    script or None,
                    ledger or None,
                    self._home,
                    self._overrides,
                    getcwd(),
                    self._text,
                    self.version,
                    self._store,
                )
            except (ValueError, OSError) as error:
                from codex_replay.core.text.error_text import error_text

                write_out(f"fake-codex: {error_text(error)}")
                raise Ended(2) from None
            if self._session.file.warning is not None and self.version == DEFAULT:
                self.write_out(self._session.file.warning)
        return self._session

    # -- output -------------------------------------------------------------------------------------------------------

    def write_out(self, frame: dict[str, Any]) -> None:
        """Send a frame immediately; with the pace `race`, send it at its scheduled time.

        A frame never overtakes output that was delayed earlier.
        """
        if self._race is not None:
            self._race.add(frame)
        elif self.due or self._held:
            self.due.append((self._held, dumps(frame) + b"\n"))
        else:
            self.send(dumps(frame) + b"\n")

    def answer_error(self, request_id: Any, error: dict[str, Any]) -> None:
        """Refuse a request with the given error. The error keeps its place among the server's other answers."""
        if self.due and self._race is None:
            self.due.append((self._held, dumps({"error": error, "id": request_id}) + b"\n"))
        else:
            super().answer_error(request_id, error)

    def delay_output(self, seconds: float) -> None:
        """Delay all further output by some seconds.

        Output that is already waiting is sent before the delay, in a separate write.
        """
        if seconds:
            self._held = monotonic() + seconds

    def _move_due(self) -> None:
        super()._move_due()
        if not self.due:
            self._held = 0.0

    @property
    def may_advance(self) -> bool:
        """Return True if a turn can continue, or if the session must be created."""
        if self._session is None:
            return self._client is not None
        return self._session.may_advance

    def advance(self) -> None:
        """Let the turns continue. The main loop calls this method when no message from the client is waiting."""
        self._go_on(quiet=True)

    def _go_on(self, *, quiet: bool) -> None:
        self.session.advance(quiet)
        self.session.save()  # before the client reads the frames: it may kill this process then
        if self._race is not None:
            self.due += self._race.schedule(self.due[-1][0] if self.due else None)

    def _flush(self) -> None:
        if self._store is not None and self._session is not None:
            self._session.save()
        super()._flush()

    def next_due(self) -> float | None:
        """Return the time at which the next frame is due or the next pause of the script ends."""
        times = [super().next_due(), self._session.next_due() if self._session is not None else None]
        return min((time for time in times if time is not None), default=None)

    def exits_on(self, number: int) -> bool:
        """Return True if the imitated Codex version exits with a normal status after the given signal."""
        from codex_replay.protocol.data_tables import load

        return number in load("turn", self.version)["traits"].get("exitsOn", ())

    def finish(self) -> int:
        """Close the ledger of requests. Return the exit status, which is 1 if the script had no answer for a request."""
        if self._session is None and self._status is None and (self._text or self._environ.get("FAKE_CODEX_LEDGER")):
            try:
                _ = self.session  # the client sent no request; errors of the script or ledger are still reported
            except Ended as end:
                return end.status or 0
        if self._session is not None:
            self._session.close()
            self.failed = self.failed or self._session.failed
        return 1 if self.failed else 0


def _gaps(pace: str) -> float:
    """Return the factor by which the real server's pauses are multiplied at a pace. Raises `ValueError` for an invalid pace."""
    from codex_replay.core.replay.pace import pace_of

    times = pace_of(pace)
    if times is None:
        raise ValueError(
            f"FAKE_CODEX_PACE is {pace!r}; without a cassette it must be fast, recorded, a number with an x such as 2x, "
            f"burst, or race:SEED."
        )
    return 1 / times if times else 0.0


def _is_plain_initialize(value: Any) -> bool:
    """Return True if a message is an ordinary initialize request, which needs no further checks."""
    if kind(value) != "request" or value["method"] != "initialize" or type(value["id"]) not in (int, str):
        return False
    params = value.get("params")
    client = params.get("clientInfo") if type(params) is dict else None
    if type(client) is not dict or type(client.get("name")) is not str or type(client.get("version")) is not str:
        return False
    if type(client.get("title")) is not str and client.get("title") is not None:
        return False
    able = params.get("capabilities")
    if able is not None and (type(able) is not dict or any(type(value) is not bool for value in able.values())):
        return False
    return _is_header(client["name"])


def _is_header(text: str) -> bool:
    """Return True if a text is a valid value of an HTTP header."""
    return text.isprintable() or all((letter >= " " or letter == "\t") and letter != "\x7f" for letter in text)
