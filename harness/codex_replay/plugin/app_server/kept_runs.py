"""Keep all traffic of each case, passed or failed, to compare the behaviour of two Codex versions.

The plugin is loaded only on request: `python -m pytest suites/app_server -p codex_replay.plugin.app_server.kept_runs
--keep-behaviour DIR`. The workers of pytest-xdist load the plugin, too. The plugin writes one redacted cassette for each
server of a case, DIR/cases/<module>/<case>.<n>.ndjson. The result of the case is written to DIR/cases/<module>/<case>.json,
and the number of cases to DIR/collected.json.

Strategy. If a case was written for one version, its assertions may fail on another version; the traffic up to the failure
is kept. After a failure, the servers get a few seconds to finish, and the recording ends before the servers are stopped.
Every client sends the opening messages of later versions (`OPENING`) and otherwise behaves as for the default version, so
that clients behave the same on both versions. A case with the marker `until` also runs on later versions. The model answers
every request, even if the request breaks an expectation of the script: a refusal by the backend would look like a change of
the server.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.redact.streamed import clean
from codex_replay.core.wire.json_text import dumps
from codex_replay.plugin.app_server.case import CASE
from codex_replay.plugin.app_server.record import LONGEST_LINE, without_long_strings
from codex_replay.plugin.app_server.server import Server
from codex_replay.plugin.base.for_versions import run_on_later
from codex_replay.plugin.base.naming import below_suites
from codex_replay.plugin.reporting.session import SESSION
from codex_replay.protocol.versions import DEFAULT
from codex_replay.shell.cassettes.file import CassetteError, CassetteWriter
from codex_replay.shell.files.atomic import write_whole

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from codex_replay.plugin.app_server.case import Case

#: 0.116 refuses dynamicTools (and more) to a client that has not asked for them; 0.92 does not know the member and ignores it.
OPENING = {"capabilities": {"experimentalApi": True}}
#: Seconds without a frame after which a server counts as finished, and the maximum wait for that.
QUIET, MOST = 0.7, 5.0
#: Longer strings of very long client lines are left out: the case sent them, and they are not compared.
CUT = 4096

END: pytest.StashKey[End] = pytest.StashKey()


class End:
    """The end of a case: `outcome` is "passed", "failed" (with the reason) or "skipped".

    `early` is True if the test function did not complete.
    """

    def __init__(self) -> None:
        self.outcome, self.sentence, self.early = "passed", "", False
        self.frozen: list[tuple[int, float]] = []  # for each server: how many frames, and when

    def take(self, case: Case, error: BaseException, *, early: bool) -> None:
        """Record that the case ended with `error`."""
        skipped = isinstance(error, pytest.skip.Exception)
        self.outcome, self.early = "skipped" if skipped else "failed", early
        self.sentence = str(error) if skipped else error_text(error)
        if early:
            settle(case)
        self.frozen = [(len(server.timeline), time.monotonic() - server.started) for server in case.servers]


def error_text(error: BaseException) -> str:
    """Return one line with the place in the suite where a case failed, and the reason."""
    where, trace = "", error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if "suites" in path.parts and path.name.startswith("test_"):
            where = f"{path.name}, line {trace.tb_lineno}: "
        trace = trace.tb_next
    first = str(error).strip().partition("\n")[0]
    return where + (first if isinstance(error, AssertionError) and first else f"{type(error).__name__}: {first}")


def settle(case: Case, quiet: float = QUIET, most: float = MOST) -> None:
    """Wait until no server of the case has sent anything for `quiet` seconds; stop waiting after `most` seconds."""
    deadline = time.monotonic() + most
    last, seen = time.monotonic(), -1
    while (now := time.monotonic()) < deadline and now - last < quiet:
        count = sum(len(server.timeline) for server in case.servers)
        if count != seen:
            last, seen = now, count
        time.sleep(0.02)


def without_expectations(script: object) -> object:
    """Return the script without its expectations, so that its turns answer every request."""
    if isinstance(script, list):
        return [without_expectations(turn) if isinstance(turn, dict) else turn for turn in script]
    if not isinstance(script, dict):
        return script
    kept = {key: value for key, value in script.items() if key != "expect"}
    return {**kept, **{key: without_expectations(kept[key]) for key in ("turns", "defaults") if key in kept}}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    group = parser.getgroup("codex-replay")
    group.addoption("--keep-behaviour", dest="keep_behaviour", metavar="DIR", help="The folder for the traffic of each case.")
    group.addoption(
        "--keep-plain",
        dest="keep_plain",
        action="store_true",
        help="Send the opening messages of each case unchanged (default: every client also declares experimentalApi).",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Keep the traffic if the option `--keep-behaviour` is given."""
    folder = config.getoption("keep_behaviour")
    if folder:
        config.pluginmanager.register(Inner(), "codex-replay-behaviour-inner")
        keeper = Keeper(Path(folder).absolute(), plain=config.getoption("keep_plain"))
        config.pluginmanager.register(keeper, "codex-replay-behaviour")


class Inner:
    """Notes a failure of the test function; the checks at the end of the case run later."""

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Stop recording frames when the function fails."""
        case = item.stash.get(CASE, None)
        try:
            return (yield)
        except BaseException as error:
            if case is not None:
                item.stash[END].take(case, error, early=True)
            raise


class Keeper:
    """Writes the frames of the cases to files in `folder`."""

    def __init__(self, folder: Path, *, plain: bool = False) -> None:
        self.folder = folder
        self._plain = plain
        if not plain:
            Server.opening, Server.dialect = OPENING, DEFAULT

    def pytest_unconfigure(self) -> None:
        """Let clients behave normally again, without the opening messages of later versions."""
        Server.opening, Server.dialect = {}, ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run all cases on the version under test, also cases that are marked for other versions.

        `--keep-plain` runs only the cases for the version under test.
        """
        if not self._plain:
            run_on_later(items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write the number of collected cases to DIR/collected.json."""
        count = sum("app_server" in getattr(item, "fixturenames", ()) for item in session.items)
        if session.items:
            _put(self.folder / "collected.json", {"cases": count})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record the JSON-RPC and HTTP traffic of the case, and note its result."""
        case = item.stash.get(CASE, None)
        item.stash[END] = end = End()
        if case is not None:
            case.start.both_seams, case.start.played = True, without_expectations
        try:
            return (yield)
        except BaseException as error:
            if case is not None and end.outcome == "passed":
                end.take(case, error, early=False)
            raise

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """After every server of the case has ended, write its traffic."""
        result = yield
        case, end = item.stash.get(CASE, None), item.stash.get(END, None)
        if case is not None and end is not None:
            node = "/".join((*below_suites(item.path), item.path.name)) + f"::{item.name}"
            self._keep(case, node, end, item.config.stash[SESSION].subject.version)
        return result

    def _keep(self, case: Case, node: str, end: End, version: str) -> None:
        place = self.folder / "cases" / case.name.suite / case.name.module
        place.mkdir(parents=True, exist_ok=True)
        message: dict[str, Any] = {
            "case": str(case.name),
            "node": node,  # below the suites, wherever they lie
            "outcome": end.outcome,
            "early": end.early,
            "sentence": end.sentence,
        }
        message["racy"] = next((server.racy for server in case.servers if server.racy), "")
        message["servers"] = [_input_ended(server, end, number) for number, server in enumerate(case.servers)]
        for number, server in enumerate(case.servers, 1):
            frozen = end.frozen[number - 1] if number <= len(end.frozen) else None
            try:
                self._write(place / f"{case.name.case}.{number}.ndjson", version, case, server, frozen)
            except CassetteError as error:
                message["lost"] = str(error)
        _put(place / f"{case.name.case}.json", message)

    @staticmethod
    def _write(path: Path, version: str, case: Case, server: Server, frozen: tuple[int, float] | None) -> None:
        recorded = server.recorded
        if recorded is not None:
            recorded.close()
            if recorded.failure:
                raise CassetteError(f"The http seam could not be kept: {recorded.failure}")
        frames = server.timeline if frozen is None else server.timeline[: frozen[0]]
        both = [*frames, *(frame for frame in _http(server) if frozen is None or frame.t <= frozen[1])]
        origin = {"rpc": "recorded", "http.client": "recorded", "http.server": "authored"}
        frames = clean(map(_shortened, sorted(both, key=lambda frame: frame.t)), server.redactor)
        with CassetteWriter(path, Header(version, "unknown", str(case.name), origin)) as writer:
            for frame in frames:
                writer.write(frame)


def _input_ended(server: Server, end: End, number: int) -> float | None:
    """Return the time at which the case closed a server's stdin, or None.

    The returned time is counted from the same start as the times of the server's frames.
    """
    ended = server.process.input_ended
    at = None if ended is None else ended - server.started
    return at if at is None or number >= len(end.frozen) or at <= end.frozen[number][1] else None


def _http(server: Server) -> Iterator[Frame]:
    yield from server.recorded.frames(server.started) if server.recorded is not None else ()


def _shortened(frame: Frame) -> Frame:
    """Return a very long client line without its long strings; a line that is not JSON is cut."""
    if frame.seam != "rpc" or frame.sender != "client" or len(frame.raw) <= LONGEST_LINE:
        return frame
    value = frame.value
    raw = frame.raw[:CUT] if value is None else dumps(without_long_strings(value, CUT)) + b"\n"
    return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, raw, extra={"truncated": True})


def _put(path: Path, value: object) -> None:
    """Write a JSON file atomically: readers never see a part of the file."""
    write_whole(path, json.dumps(value).encode())
