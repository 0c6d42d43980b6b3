"""What was said in a case, for the report: taken from what its fixture has kept, redacted, and put where the report finds it.

Strategy. A case that replayed its cassette and passed is told by that cassette. Of any other case the frames are taken from its
fixture (they are there already) and redacted. Both are made JSON and written to a spool, one file a process, so that nothing of
it travels with pytest's own reports, a worker that dies loses one case, and at the end little is left to do. Of a passed case
less is kept than of a failed one. A story that cannot be told must not change a verdict: then a sentence stands for it.
"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harness.core import frames as core
from harness.core.reason import reason
from harness.core.redact import Redactor
from harness.plugin.spec import spec_of, title_of
from harness.report.model import Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

    from harness.plugin.run import Case
    from harness.plugin.server import Server
    from harness.plugin.session import Session

#: How much is kept of a case that passed, and of one that failed or ran live: frames, and characters of one frame.
PASSED, FAILED = (80, 2048), (2000, 1 << 16)
LONGEST_SIDE = 1 << 14
#: Longer than any secret, in characters.
MARGIN = 1 << 15
#: How many names of frames are remembered.
_NAMES = 4096
_CUT = "[cut]"
_RUN = r"[A-Za-z0-9_+=.%~@/-]"
#: What keys begin with: enough to know one by, however little is left of it.
_BEGUN = r"(?<![A-Za-z0-9])(?:sk-|sess-|gh[opsu]_|github_pat_|glpat-|xox[abp]-|eyJ|AKIA)"
_TORN = re.compile(rf"(?:{_BEGUN}{_RUN}*|{_RUN}{{6,}})?\.\.\.(?:{_RUN}{{6,}})?")
#: The beginning of a key, or letters of both cases with digits, or many hexadecimal digits, or an address.
_OPAQUE = re.compile(
    rf"{_BEGUN}|"
    r"(?=[^\s]*[A-Z])(?=[^\s]*[a-z])(?=[^\s]*[0-9])[A-Za-z0-9_+=%~/-]{8,}|(?=[0-9a-f-]*[0-9])[0-9a-f-]{16,}|[\w.%+-]+@[\w.-]"
)


def note(
    session: Session, item: Any, call: pytest.CallInfo[None], report: pytest.TestReport, case: Case | None, said: dict[str, Any]
) -> None:
    """Add to what is said of a case, in the process that has run it, what only that process knows; keep its story."""
    if report.when == "setup":
        name = "{suite}/{module}/{case}".format(**said)
        said["title"], said["spec"] = title_of(item, said["case"]), spec_of(item, name)
    # The last comparison that failed is what the case fails of only if it says so: a case may have caught one.
    why = call.excinfo.value if report.failed and call.excinfo is not None else None
    if session.compared is not None and type(why) is AssertionError and " == " in str(why):
        said["compared"] = [session.taker().clean(_side(value))[:LONGEST_SIDE] for value in session.compared]
    if not session.tells or not (report.failed or (report.when == "call" and report.passed)):
        return
    try:
        if report.passed and case is not None and not session.subject.live:
            story = _reproduced(case)
        else:
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
        self._named: dict[str, str] = {}

    def clean(self, text: str) -> str:
        """Return what a failure says without its secrets, whole or torn."""
        return without_torn(self._redactor.text(text))

    def take(self, funcargs: dict[str, Any], case: Case | None, *, passed: bool) -> dict[str, Any] | None:
        """Return a story without its case, or None where there is nothing to tell."""
        if case is not None:
            return self._app_server(case) if case.servers else None
        from harness.plugin import captures

        kept: dict[str, Callable[[Any], Iterator[Frame]]] = {
            "backend": captures.backend_frames,
            "lite_client": captures.lite_client_frames,
            "editor_client": captures.editor_frames,
            "proxy": captures.proxy_frames,
            "fake_codex": captures.fake_codex_frames,
            "codex_backend": captures.codex_backend_frames,
        }
        for name, tell in kept.items():
            fixture: Any = funcargs.get(name)
            if type(fixture).__module__.startswith("harness.plugin."):
                most, longest = PASSED if passed else FAILED
                told = list(_some(tell(fixture), most))
                frames = [self._clean(frame, n, longest) for n, frame in enumerate(told, 1)]
                return _story(frames, truncated=len(told) > most) if frames else None
        return None

    def _clean(self, frame: Frame, n: int, longest: int) -> Frame:
        text, whole = self._beginning(frame["text"], longest)
        frame["n"], frame["what"], frame["text"] = n, self._name(frame["what"]), text[:longest]
        if whole > longest:
            frame["cut"] = whole
        return frame

    def _name(self, what: str) -> str:
        """Return what a frame is called without its secrets; few names are new."""
        name = self._named.get(what)
        if name is None:
            if len(self._named) >= _NAMES:
                self._named.clear()
            name = self._named[what] = self._redactor.text(what)[:300]
        return name

    def _beginning(self, text: str, longest: int) -> tuple[str, int]:
        """Return a text without its secrets, or enough of its beginning to keep `longest` of, and how long all of it is.

        A secret that is cut in two may go unseen: so far more is looked at than is kept, and none of what is near the cut.
        """
        if len(text) <= longest + 2 * MARGIN:
            text = self._redactor.text(text)
            return text, len(text)
        begun = self._redactor.text(text[: longest + 2 * MARGIN])
        return begun[: max(0, len(begun) - MARGIN)], len(text)

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


def _reproduced(case: Case) -> dict[str, Any] | None:
    """Return the story of a case that reproduced its cassettes, one a server: what they say, server by server."""
    from harness.report.cassette_story import cassette_story
    from harness.shell.cassette import CassetteError

    joined: dict[str, Any] | None = None
    for number, server in enumerate(case.servers, 1):
        try:
            story = cassette_story(server.cassette, "")
        except CassetteError:
            continue  # it was there a moment ago; the case's verdict does not hang on it
        if len(case.servers) > 1:
            for frame in story["frames"]:
                frame["conn"] = number if frame["seam"] == "rpc" else frame["conn"]
        if joined is None:
            joined = dict(story)
            continue
        joined["frames"] += story["frames"]
        joined["truncated"] = joined["truncated"] or story["truncated"]
    for n, frame in enumerate(joined["frames"] if joined else (), 1):
        frame["n"] = n
    return joined


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
    if server.upstream is None:
        return
    try:
        entries = server.upstream.ledger()
    except Exception as error:  # the backend is gone, say: a story without its half must not look whole
        why = f"What the model was asked cannot be told: {reason(error)}"
        yield core.Frame(0, max(0.0, time.monotonic() - server.started), "http", "server", "close", b"", why, 1)
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
