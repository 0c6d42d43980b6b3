"""The functions on cassettes that `codex_replay` offers its users: open, lint, normalise, diff.

The functions are short: the modules `file`, `lint` and `codex_replay.protocol.recordings.compare` do the work. A module
that only one function needs is imported inside the function.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from codex_replay.core.text.escape import escape
from codex_replay.protocol import data_tables, versions
from codex_replay.shell.cassettes.file import CassetteError, CassetteReader

if TYPE_CHECKING:
    from codex_replay.core.cassette.frames import Frame
    from codex_replay.core.redact.redactor import Redactor
    from codex_replay.protocol.recordings.compare import Comparison, NormalEvent
    from codex_replay.shell.cassettes.lint import Report

    #: A recording: the path of a cassette, an open one, a `Conversation`, or its frames.
    Recording = str | os.PathLike[str] | Iterable[Frame]

_NO_RECORDING = "A recording is the path of a cassette, an open cassette, a Conversation or an iterable of frames; this is {}."


def open_cassette(path: str | os.PathLike[str]) -> CassetteReader:
    """Open the cassette at `path`.

    The returned object is a context manager that yields the frames in order and reads one line at a time.

    `header` is set immediately; `footer` is set after the last frame. A recording that was cut short is readable up to its
    last complete frame; then `truncated` is a sentence, and `footer` stays None. Raises `CassetteError` for a file that
    cannot be read, and for a damaged line before the last line.
    """
    return CassetteReader(_path(path))


def lint(
    path: str | os.PathLike[str], *, codex: str | None = None, judge: str = "server", redactor: Redactor | None = None
) -> Report:
    """Check one cassette like `codex-replay cassette lint`. Return a report with `ok`, `findings` and `unreadable`.

    The frames of the side `judge` ("server", "client" or "both") must be valid in the schema bundle of `codex`: a version
    or a path (default: the version in the header). Invalid frames of the side that is not judged are only notes in the
    report. A text that `redactor` would replace counts as a secret (default: a new `Redactor`). For an invalid file, the
    report contains the error, and no exception is raised. Raises `CassetteError` if there is no file at `path`,
    `BundleError` for a `codex` without a bundle, and `ValueError` for any other `judge`.
    """
    from codex_replay.shell.cassettes import bundle_check
    from codex_replay.shell.cassettes.lint import lint as check

    if judge not in bundle_check.SIDES:
        raise ValueError(f"`judge` is {judge!r}; it must be one of {', '.join(bundle_check.SIDES)}.")
    if codex is not None:
        bundle_check.bundle_of(codex)
    return check(_path(path), bundle_check.bundle_checks(codex, judge), redactor=redactor)


def normalise(recording: Recording, *, codex: str | None = None) -> list[NormalEvent]:
    """Return the normalised events of a recording.

    Two runs of a scenario are equal if their lists of normalised events are equal.

    `recording` is a path, an open cassette, a `Conversation` or any iterable of frames. Normalisation replaces ids by names
    (`<thread:1>`), masks times and durations, joins output chunks, and puts frames of declared races in one order. The
    frames that the server sent because of a request follow the request. `codex` is the Codex version whose tables are used.
    The default for `codex` is the version of the recording; for an iterable of frames, it is the default version. If the
    version of the recording has no tables, a warning is issued. If the version `codex` has no tables, `ValueError` is raised.
    Raises `CassetteError` for a recording that cannot be read.
    """
    from codex_replay.protocol.recordings.compare import normal_form

    frames, version = _frames(recording)
    version = _checked(codex) or version
    _warn(data_tables.choose("normalise", version)[1])
    return normal_form(frames, version, replies_first=True)


def diff(a: Recording, b: Recording, *, codex: str | None = None) -> Comparison:
    """Compare two recordings after normalisation.

    The result has `equal` (True or False) and `differences`, the smallest difference first.

    `a` and `b` are recordings of any type that `normalise` accepts. `codex` is the version whose tables are used (default:
    the version of `a`, otherwise the version of `b`). If one of the recordings has another version than `codex`, a warning
    is issued, and `note` is a sentence with the warning. Each difference has a `kind`, the frame numbers `a` and `b`, a
    JSON `path`, the values `left` and `right`, and `sentence()`. Raises `CassetteError`, and `ValueError` for a `codex`
    without tables.
    """
    from codex_replay.protocol.recordings.compare import compare

    chosen = _checked(codex)
    (left, version), (right, other) = _frames(a), _frames(b)
    found = compare(left, right, chosen or version, chosen or other)
    _warn(found.note)
    return found


def _checked(codex: str | None) -> str | None:
    """Return the Codex version that the caller named. Raises `ValueError` if the version has no tables."""
    if codex is not None and (why := data_tables.unavailable("normalise", codex)):
        raise ValueError(f"codex: {why}")
    return codex


def _warn(note: str) -> None:
    if note:
        warnings.warn(note, stacklevel=3)


def _path(path: object) -> str:
    """Return a path as text; raises TypeError or `CassetteError` with a sentence for a value that cannot be a path."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        raise TypeError(f"A cassette is opened by its path, a str or a pathlib.Path; this is {type(path).__name__}.")
    if not text:
        raise CassetteError("The path of the cassette is empty; give the path of a file.")
    if "\0" in text:
        raise CassetteError(f"{escape(text)}: a path cannot contain a NUL character; check the path.")
    return text


def _frames(recording: Recording) -> tuple[Iterable[Frame], str]:
    """Return the frames of a recording and its Codex version."""
    if isinstance(recording, str | os.PathLike):
        with open_cassette(recording) as reader:
            return list(reader), reader.header.codex
    if isinstance(recording, CassetteReader):
        return recording, recording.header.codex
    given: object = recording
    if isinstance(given, bytes | bytearray) or not isinstance(given, Iterable):
        raise TypeError(_NO_RECORDING.format(type(recording).__name__))
    return _only_frames(recording), getattr(recording, "codex", versions.DEFAULT)


def _only_frames(frames: Iterable[Frame]) -> Iterator[Frame]:
    from codex_replay.core.cassette.frames import Frame

    for frame in frames:
        if not isinstance(frame, Frame):
            raise TypeError(_NO_RECORDING.format(f"iterable with {type(frame).__name__}"))
        yield frame
