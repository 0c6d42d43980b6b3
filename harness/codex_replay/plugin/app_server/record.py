"""Write the traffic of a case with a real server to the cassette of the case.

The new recording is first a draft file next to the cassette. The draft replaces the old cassette only if the two differ
after normalisation, so that `git diff` shows only real changes.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_replay.core.cassette.frames import Frame, Header, encode_header, parse_line
from codex_replay.core.redact.streamed import clean
from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.cassettes.file import CassetteError, CassetteReader, CassetteWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codex_replay.core.redact.redactor import Redactor
    from codex_replay.plugin.base.naming import CaseName

LONGEST_LINE = 1 << 18


def without_long_strings(value: Any, longest: int) -> Any:
    """Return `value` without its strings of more than `longest` characters."""
    if isinstance(value, dict):
        return {key: without_long_strings(item, longest) for key, item in value.items() if not _is_long(item, longest)}
    if isinstance(value, list):
        return [without_long_strings(item, longest) for item in value if not _is_long(item, longest)]
    return value


def _is_long(value: Any, longest: int) -> bool:
    return isinstance(value, str) and len(value) > longest


def header_of(name: CaseName, version: str, upstream: Mapping[str, Any]) -> Header:
    """Return the header of the cassette of a case.

    `upstream` has the script and the configuration of the model, which `codex-replay replay` needs to replay the case
    against another server. The HTTP requests come from a real server (origin "recorded"), and the model's answers come from
    a script (origin "authored").
    """
    from codex_replay.shell.codex.origin import bundle_of

    origin = {"rpc": "recorded", "http.client": "recorded", "http.server": "authored"}
    return Header(version, bundle_of(version), str(name), origin, {"upstream": dict(upstream)})


def write_cassette(path: Path, header: Header, frames: Iterable[Frame], redactor: Redactor, cut: int | None = None) -> bool:
    """Write a recording to `path`, unless the file has the same content; return True if the file changed.

    From the client's long lines, omit strings of more than `cut` characters, and mark the frames as truncated. Raises
    `CassetteError` if the cassette cannot be written.
    """
    tidy = parse_line(redactor.redact(encode_header(header)))  # the configuration in it may contain tokens
    assert isinstance(tidy, Header)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        whole = clean((_shortened(frame, cut) if len(frame.raw) > LONGEST_LINE else frame for frame in frames), redactor)
        with CassetteWriter(draft, tidy) as writer:
            for frame in whole:
                writer.write(frame)
        if path.exists() and _same(path, draft):
            return False
        os.replace(draft, path)
        return True
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()


def _same(old: Path, new: Path) -> bool:
    from codex_replay.protocol.recordings.compare import equal_after_normalisation

    try:
        with CassetteReader(old) as before, CassetteReader(new) as now:
            return (
                _masked(before.header) == _masked(now.header)
                and equal_after_normalisation(list(before), list(now), now.header.codex)
                and before.truncated is None
            )
    except CassetteError:
        return False


def _masked(header: Header) -> str:
    """Return the header without the values that differ between runs, such as the port of a server that the case started."""
    from codex_replay.core.normalise.normaliser import Rules
    from codex_replay.protocol.data_tables import choose

    return Rules(choose("normalise", header.codex)[0]).mask_string(encode_header(header).decode())


def _shortened(frame: Frame, cut: int | None) -> Frame:
    if cut is None or frame.sender != "client":
        raise CassetteError(
            f"Frame {frame.n} has {len(frame.raw)} bytes, too many for a cassette; "
            "start the server with cut=SIZE to leave out long strings."
        )
    raw = dumps(without_long_strings(frame.value, cut)) + b"\n"
    return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, raw, extra={"truncated": True})
