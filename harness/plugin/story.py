"""What was said in a case, for the report: taken from what its fixture has kept, redacted, and put where the report finds it.

Strategy. A case that replayed its cassette and passed is told by that cassette, read when the report is written: here only its
path is noted. Of any other case the frames are taken from its fixture (they are there already), redacted, and written to a spool,
one file a process, so that nothing of it travels with pytest's own reports and a worker that dies loses one case. Of a passed
case less is kept than of a failed one. A story that cannot be told must not change a verdict: then a sentence stands for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harness.core import frames as core
from harness.core.redact import Redactor
from harness.plugin.spec import spec_of, title_of
from harness.report.model import Frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pytest

    from harness.plugin.backend import Backend
    from harness.plugin.editor_client import EditorClient
    from harness.plugin.hooks import Session
    from harness.plugin.lite_client import LiteClient
    from harness.plugin.proxy import Proxy
    from harness.plugin.run import Case, Server

#: How much is kept of a case that passed, and of one that failed or ran live: frames, and characters of one frame.
PASSED, FAILED = (120, 4096), (2000, 1 << 16)
LONGEST_SIDE = 1 << 14
_CUT = "[cut]"
_RUN = r"[A-Za-z0-9_+=.%~@/-]"
_TORN = re.compile(rf"(?:{_RUN}{{6,}})?\.\.\.(?:{_RUN}{{6,}})?")
#: Letters of both cases with digits, or many hexadecimal digits, or an address.
_OPAQUE = re.compile(
    r"(?=[^\s]*[A-Z])(?=[^\s]*[a-z])(?=[^\s]*[0-9])[A-Za-z0-9_+=%~/-]{8,}|(?=[0-9a-f-]*[0-9])[0-9a-f-]{16,}|[\w.%+-]+@[\w.-]"
)


def key_of(nodeid: str) -> str:
    """Return the name of a case's story in the spool; it tells nothing of the node id, which may hold a secret."""
    return hashlib.sha256(nodeid.encode("utf-8", "surrogatepass")).hexdigest()[:24]


class Spool:
    """Where the processes of a run put stories until the report is written: `folder`/<pid>.ndjson, a story a line."""

    def __init__(self, folder: Path, owner: int = 0) -> None:
        self.folder = folder
        self._owner = owner

    @classmethod
    def make(cls) -> Spool:
        """Make a spool in a folder of its own, which only this user can read."""
        return cls(Path(tempfile.mkdtemp(prefix="codex-replay-stories-")), os.getpid())

    def remove(self) -> None:
        """Take the folder away, if it is this process that made it."""
        if self._owner == os.getpid():
            shutil.rmtree(self.folder, ignore_errors=True)

    def put(self, nodeid: str, story: dict[str, Any]) -> None:
        """Add a story, in one write; raises `OSError`."""
        line = json.dumps({"key": key_of(nodeid), **story}, separators=(",", ":")).encode() + b"\n"
        with open(self.folder / f"{os.getpid()}.ndjson", "ab") as file:
            file.write(line)

    def index(self) -> dict[str, tuple[Path, int]]:
        """Return where each story lies: the file and the offset of its line; of two of one case the later."""
        found: dict[str, tuple[Path, int]] = {}
        for path in sorted(self.folder.glob("*.ndjson"), key=lambda path: path.stat().st_mtime_ns):
            with open(path, "rb") as file:
                at = 0
                for line in file:
                    if line.endswith(b"\n"):  # a process that was killed may have left half a line
                        found[line[8:32].decode("ascii", "replace")] = (path, at)
                    at += len(line)
        return found

    @staticmethod
    def read(place: tuple[Path, int]) -> dict[str, Any]:
        """Return the story that lies at a place of the index."""
        with open(place[0], "rb") as file:
            file.seek(place[1])
            story: dict[str, Any] = json.loads(file.readline())
        del story["key"]
        return story


def note(
    session: Session, item: Any, call: pytest.CallInfo[None], report: pytest.TestReport, case: Case | None, said: dict[str, Any]
) -> None:
    """Add to what is said of a case, in the process that has run it, what only that process knows; keep its story."""
    if report.when == "setup":
        name = "{suite}/{module}/{case}".format(**said)
        said["title"], said["spec"] = title_of(item, said["case"]), spec_of(item, name)
    if report.failed and session.compared is not None and call.excinfo is not None and call.excinfo.type is AssertionError:
        said["compared"] = [session.taker().clean(_side(value))[:LONGEST_SIDE] for value in session.compared]
    if not session.tells or not (report.failed or (report.when == "call" and report.passed)):
        return
    if report.passed and case is not None and not session.subject.live:
        said["cassettes"] = [str(server.cassette) for server in case.servers]
        return
    try:
        story = session.taker().take(getattr(item, "funcargs", {}), case, passed=report.passed)
        if story is not None:
            session.need_spool().put(item.nodeid, story)
    except Exception as error:  # whatever a broken subject made of it: the verdict stands
        report.sections.append(("No story", f"What was said cannot be told: {type(error).__name__}: {error}"))


def _side(value: object) -> str:
    """Return one side of a comparison as text: JSON where it can be, so that the two sides can be laid beside each other."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, default=repr)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text


def without_torn(text: str) -> str:
    """Return a text for people without what may be the half of a secret: whoever shortens a value may cut one in two.

    Half a token has neither the form nor the name by which it could be known; so what touches an ellipsis and looks it goes.
    """
    return _TORN.sub(lambda found: _CUT if _OPAQUE.search(found[0]) else found[0], text)


class Taker:
    """Takes the story of one case from its fixtures. One redactor serves all cases of a process."""

    def __init__(self, paths: dict[str, str] | None = None) -> None:
        self._redactor = Redactor(paths=paths)

    def clean(self, text: str) -> str:
        """Return what a failure says without its secrets, whole or torn."""
        return without_torn(self._redactor.text(text))

    def take(self, funcargs: dict[str, Any], case: Case | None, *, passed: bool) -> dict[str, Any] | None:
        """Return a story without its case, or None where there is nothing to tell."""
        if case is not None:
            return self._app_server(case) if case.servers else None
        for name, tell in (("backend", _backend), ("lite_client", _lite_client), ("editor_client", _editor), ("proxy", _proxy)):
            fixture: Any = funcargs.get(name)
            if type(fixture).__module__.startswith("harness.plugin."):
                most, longest = PASSED if passed else FAILED
                told = list(_some(tell(fixture), most))
                frames = [self._clean(frame, n, longest) for n, frame in enumerate(told, 1)]
                return _story(frames, truncated=len(told) > most) if frames else None
        return None

    def _clean(self, frame: Frame, n: int, longest: int) -> Frame:
        text = self._redactor.text(frame["text"])
        frame["n"], frame["what"], frame["text"] = n, self._redactor.text(frame["what"])[:300], text[:longest]
        if len(text) > longest:
            frame["cut"] = len(text)
        return frame

    # -- the app-server --------------------------------------------------------------------------------------------------

    def _app_server(self, case: Case) -> dict[str, Any]:
        from harness.report.beside import beside, values

        frames: list[Frame] = []
        story = _story(frames)
        for number, server in enumerate(case.servers, 1):
            live, cut = _live(server)
            # A ledger is no recording of the http seam: it has no events, and so is told without being compared.
            whole = server.recorded is not None or server.upstream is None
            told, found = beside(_recorded(server), live, case.version, ("rpc", "http") if whole else ("rpc",))
            story["truncated"] = story["truncated"] or cut
            if found and "expected" not in story:
                story["expected"], story["actual"] = (None if text is None else text[: FAILED[1]] for text in values(found))
            for frame in told:
                if len(case.servers) > 1 and frame["seam"] == "rpc":
                    frame["conn"] = number
                frames.append(frame)
        for n, frame in enumerate(frames, 1):
            frame["n"] = n
        story["cassette"] = str(case.servers[0].cassette) if case.servers[0].cassette.exists() else None
        return story


def _story(frames: list[Frame], *, truncated: bool = False) -> dict[str, Any]:
    return {"source": "this run", "cassette": None, "truncated": truncated, "frames": frames}


def _some(frames: Iterator[Frame], most: int) -> Iterator[Frame]:
    for count, frame in enumerate(frames):
        if count > most:
            return
        yield frame


def _live(server: Server) -> tuple[list[core.Frame], bool]:
    """Return what was said to and by a server, redacted and in the order of time, and whether some of it is left out."""
    seen = list(server.timeline)
    if server.recorded is not None:
        server.recorded.close()
        seen = sorted([*seen, *server.recorded.frames(server.started)], key=lambda frame: frame.t)
    elif server.upstream is not None:
        seen = sorted([*seen, *_ledger(server)], key=lambda frame: frame.t)
    most = FAILED[0]
    kept = seen if len(seen) <= most else [*seen[: most // 4], *seen[-(most - most // 4) :]]
    return [_redacted(frame, n, server.redactor) for n, frame in enumerate(kept, 1)], len(seen) > most


def _ledger(server: Server) -> Iterator[core.Frame]:
    """What a live server asked of its model, as our backend has it; the answers are those of the script."""
    try:
        entries = server.upstream.ledger() if server.upstream is not None else []
    except Exception:
        return
    if server.upstream is None:
        return
    # The ledger counts its seconds from the session's beginning, and names the session in its paths.
    later, prefix = server.upstream.started - server.started, urlsplit(server.upstream.url).path
    for entry in entries:
        entry = {**entry, "t": max(0.0, entry["t"] + later), "path": entry["path"].removeprefix(prefix)}
        head = {"method": entry["method"], "path": entry["path"], "headers": entry["headers"], "body": entry.get("body")}
        yield core.Frame(0, entry["t"], "http", "client", "request", b"", head, entry["n"])
        if entry["status"] is not None:
            yield core.Frame(
                0, entry["t"], "http", "server", "response", b"", {"status": entry["status"], "headers": []}, entry["n"]
            )


def _redacted(frame: core.Frame, n: int, redactor: Redactor) -> core.Frame:
    if frame.seam == "rpc":
        return core.Frame(n, frame.t, "rpc", frame.sender, frame.kind, redactor.redact(frame.raw), extra=frame.extra)
    payload = redactor.value(frame.payload)
    return core.Frame(n, frame.t, "http", frame.sender, frame.kind, b"", payload, frame.conn, extra=frame.extra)


def _recorded(server: Server) -> list[core.Frame]:
    """Return the frames of a server's cassette; of a broken one those that can be read."""
    from harness.shell.cassette import CassetteError, CassetteReader

    frames: list[core.Frame] = []
    try:
        with CassetteReader(server.cassette) as reader:
            frames.extend(reader)
    except CassetteError:
        pass  # there is none yet, or it is what the case failed of
    return frames


# -- the other subjects: frames as their fixtures have kept them, not redacted yet ---------------------------------------------


def _frame(t: float | None, seam: str, sender: str, conn: str | int | None, kind: str, what: str, text: str) -> Frame:
    return {
        "n": 0,
        "t": t,
        "seam": "http" if seam == "http" else "rpc",
        "from": "client" if sender == "client" else "server",
        "conn": conn,
        "kind": kind,
        "what": what,
        "text": text,
        "mark": None,
        "expected": None,
        "paths": [],
        "bound": [],
        "masked": [],
    }


def _request(t: float | None, conn: int, method: str, path: str, headers: Any, body: Any) -> Frame:
    said = {"method": method, "path": path, "headers": [list(pair) for pair in headers], "body": _readable(body)}
    return _frame(t, "http", "client", conn, "http-request", f"{method} {path}", _json(said))


def _answer(t: float | None, conn: int, status: int | None, headers: Any, body: bytes) -> Iterator[Frame]:
    """Yield an answer: its head, with the body in it or, of an event stream, each event by itself."""
    pairs = [list(pair) for pair in headers]
    stream = any(name.lower() == "content-type" and "event-stream" in value for name, value in pairs)
    head = {"status": status, "headers": pairs, **({} if stream or not body else {"body": _readable(body)})}
    yield _frame(t, "http", "server", conn, "http-response", f"HTTP {status or 'no answer'}", _json(head))
    for block in body.decode("utf-8", "backslashreplace").replace("\r\n", "\n").split("\n\n") if stream else ():
        if block.strip():
            first = block.partition("\n")[0]
            name = first.removeprefix("event:").strip() if first.startswith("event:") else first[:40]
            yield _frame(t, "http", "server", conn, "sse", f"event {name}", block)


def _readable(body: Any) -> Any:
    if not isinstance(body, bytes):
        return body
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "backslashreplace")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _backend(backend: Backend) -> Iterator[Frame]:
    start = backend.said[0].started if backend.said else 0.0
    for conn, one in enumerate(backend.said, 1):
        yield _request(one.started - start, conn, one.method, one.path, one.headers.items(), one.body)
        if one.answer is not None:
            yield from _answer(one.ended - start, conn, one.answer.status, one.answer.headers, one.answer.body)


def _lite_client(client: LiteClient) -> Iterator[Frame]:
    requests = [request for run in client.runs for request in run.requests]
    for conn, request in enumerate(requests, 1):
        yield _request(None, conn, request.method, request.path, request.headers, request.body)
        said = {"status": request.status, **({"refused": request.sentence} if request.sentence else {})}
        what = f"HTTP {request.status or 'no answer'}"
        yield _frame(None, "http", "server", conn, "http-response", what, _json(said))


def _editor(client: EditorClient) -> Iterator[Frame]:
    conn = 0
    for editor in client.editors:
        lines: list[tuple[float | None, int, str, str]] = []
        for entry in editor.ledger():
            conn += "run" in entry
            lines += [(None, conn, sender, str(entry[key])) for key, sender in _SIDES if key in entry]
        yield from _rpc(lines)


_SIDES = (("got", "client"), ("said", "server"), ("sent", "server"))


def _rpc(lines: Iterable[tuple[float | None, int, str, str]]) -> Iterator[Frame]:
    from harness.report.cassette_story import kind_of
    from harness.report.labels import Labels

    labels: dict[int, Labels] = {}
    for t, conn, sender, line in lines:
        raw = line.encode("utf-8", "surrogateescape")
        frame = core.Frame(0, t or 0.0, "rpc", sender, "msg", raw)
        label = labels.setdefault(conn, Labels()).label(frame)
        yield _frame(t, "rpc", sender, conn, kind_of(frame), label, raw.decode("utf-8", "backslashreplace"))


def _proxy(proxy: Proxy) -> Iterator[Frame]:
    told: list[tuple[float, Frame]] = []
    if not proxy.exchanges:
        return
    start = proxy.exchanges[0].started
    children: dict[str, int] = {}
    for conn, one in enumerate(proxy.exchanges, 1):
        told.append((one.started, _request(one.started - start, conn, one.method, one.path, (), one.sent)))
        told += [(one.ended, frame) for frame in _answer(one.ended - start, conn, one.status, one.headers, one.body)]
        times = [frame.t for frame in one.frames]
        lines = [
            (frame.t - start, children.setdefault(frame.child, len(children) + 1), frame.sender, frame.raw)
            for frame in one.frames
        ]
        told += zip(times, _rpc(lines), strict=True)
    told.sort(key=lambda pair: pair[0])
    yield from (frame for _, frame in told)
