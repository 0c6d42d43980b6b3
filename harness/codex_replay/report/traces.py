"""Write and read the traces of a report (stories.ndjson) one at a time, in any order, because all traces together may not fit in
memory.

A trace is converted to JSON text only once, when it is collected; stories.ndjson and the page use the same text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from codex_replay.report.data import TRACES, BadReport, Frame, Trace
from codex_replay.shell.files.atomic import replacing


class TraceText(NamedTuple):
    """A trace as JSON text, and its key: the `story` of its case."""

    key: str
    text: bytes


def frames_text(frames: list[Frame]) -> bytes:
    """Return frames as JSON in UTF-8, on one line."""
    return _dumps(frames)


def trace_text(key: str, head: Mapping[str, Any], frames: bytes) -> TraceText:
    """Join a trace from its description (`source`, `cassette`, `truncated`) and the text of its frames."""
    message = {"case": key, **{name: head[name] for name in ("source", "cassette", "truncated")}}
    return TraceText(key, b'%s,"frames":%s}' % (_dumps(message)[:-1], frames))


def as_text(trace: Trace | TraceText) -> TraceText:
    """Return a trace as text."""
    return trace if isinstance(trace, TraceText) else TraceText(trace["case"], _dumps(trace))


def _dumps(value: Any) -> bytes:
    """Return a value as JSON in UTF-8; lone surrogates are escaped, and NaN and infinite numbers become strings."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def finite(value: Any) -> Any:
    """Return a value in which numbers that JSON does not allow (NaN, Infinity) are strings, so that other programs can read
    the file.
    """
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def writing_traces(folder: Path, traces: Iterable[Trace | TraceText]) -> Iterator[TraceText]:
    """Write `folder`/stories.ndjson, and yield each trace after it is written.

    stories.ndjson gets its final name only after all traces are written. Raises `OSError` if the file cannot be written.
    """
    with replacing(folder / TRACES) as draft, open(draft, "wb") as file:
        for trace in traces:
            text = as_text(trace)
            file.write(text.text + b"\n")
            yield text


def read_traces(folder: Path) -> Iterator[Trace]:
    """Yield the traces in stories.ndjson of a folder one by one; yield nothing if the file does not exist.

    Raises `BadReport` for a broken line.
    """
    path = folder / TRACES
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                yield _trace(line, f"{path}, line {number}")
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadReport(f"{path} cannot be read: {error.strerror}.") from None


def _trace(line: bytes, where: str) -> Trace:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise BadReport(f"{where}: the line is incomplete or not JSON ({error}); run the suite again.") from None
    if not isinstance(value, dict) or not isinstance(value.get("case"), str) or not isinstance(value.get("frames"), list):
        raise BadReport(f"{where}: this is not a trace: it needs 'case' and 'frames'.")
    trace: Trace = value  # type: ignore[assignment]
    return trace
