"""The trace of an app-server case: the frames of the case, for the report.

If the frames of the case equal its cassettes, the trace is copied from the cassettes. If the frames differ, the trace
compares the frames of the case with its cassettes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from codex_replay.core.cassette import frames as core
from codex_replay.core.text.error_text import error_text
from codex_replay.plugin.reporting.trace import FAILED, CollectedTrace, new_trace
from codex_replay.shell.files.archive import is_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codex_replay.core.redact.redactor import Redactor
    from codex_replay.plugin.app_server.case import Case
    from codex_replay.plugin.app_server.server import Server
    from codex_replay.plugin.reporting.trace import TraceCollector
    from codex_replay.report.data import Frame


def case_trace(case: Case, collector: TraceCollector, passed: bool) -> CollectedTrace | None:
    """Return the trace of a case, redacted by the redactor of each server; None if the case started no server."""
    if not case.servers:
        return None
    return _reproduced(case) if passed and not case.servers[0].live else _compared(case)


def _compared(case: Case) -> CollectedTrace:
    """Return the trace of a case that failed or ran with a real server: the frames of each server, compared with its cassette."""
    from codex_replay.report.side_by_side import align, values

    frames: list[Frame] = []
    trace = new_trace(frames)
    for number, server in enumerate(case.servers, 1):
        live, cut = _live(server)
        # A ledger is not a recording of the http seam: it has no events, and so is shown without a comparison.
        whole = server.recorded is not None or server.upstream is None
        recorded, version = _recorded(server, case.version)
        report, found = align(recorded, live, version, ("rpc", "http") if whole else ("rpc",))
        trace["truncated"] = trace["truncated"] or cut
        if found and "expected" not in trace:
            trace["expected"], trace["actual"] = (None if text is None else text[: FAILED[1]] for text in values(found))
        for frame in report:
            if len(case.servers) > 1 and frame["seam"] == "rpc":
                frame["conn"] = number
            frames.append(frame)
    for n, frame in enumerate(frames, 1):
        frame["n"] = n
    trace["cassette"] = str(case.servers[0].cassette) if is_file(str(case.servers[0].cassette)) else None
    return trace


def _reproduced(case: Case) -> CollectedTrace | None:
    """Return the trace of a case whose frames equal its cassettes: the frames of the cassettes, one cassette for each server."""
    from codex_replay.report.cassette_trace import cassette_trace
    from codex_replay.shell.cassettes.file import CassetteError

    joined: CollectedTrace | None = None
    for number, server in enumerate(case.servers, 1):
        try:
            trace = cassette_trace(server.cassette, "")
        except CassetteError:
            continue  # it was there a moment ago; the case's verdict does not hang on it
        if len(case.servers) > 1:
            for frame in trace["frames"]:
                frame["conn"] = number if frame["seam"] == "rpc" else frame["conn"]
        if joined is None:
            joined = cast("CollectedTrace", dict(trace))
            continue
        joined["frames"] += trace["frames"]
        joined["truncated"] = joined["truncated"] or trace["truncated"]
    for n, frame in enumerate(joined["frames"] if joined else (), 1):
        frame["n"] = n
    return joined


def _live(server: Server) -> tuple[list[core.Frame], bool]:
    """Return the redacted traffic of a server in order of time, and True if a part of the traffic is left out."""
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
    """Return the requests of a real server to its model, as the fake backend recorded them; the answers come from the script."""
    if server.upstream is None:
        return
    try:
        entries = server.upstream.ledger()
    except Exception as error:  # the backend has exited, for example: an incomplete trace must not look complete
        why = f"The requests to the model cannot be read: {error_text(error)}"
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


def _recorded(server: Server, version: str) -> tuple[list[core.Frame], str]:
    """Return the frames of a server's cassette and its Codex version; from a broken cassette, return only the readable frames.

    The caller compares the frames with the tables of the returned version. If the cassette names no version, return
    `version`, the version of the server under test.
    """
    from codex_replay.shell.cassettes.file import CassetteError, CassetteReader

    frames: list[core.Frame] = []
    try:
        with CassetteReader(server.cassette) as reader:
            version = reader.header.codex
            frames.extend(reader)
    except CassetteError:
        pass  # there is none yet, or it is the reason why the case failed
    return frames, version
