"""Write a cassette as a stream.

At the end, the secrets that were streamed in chunks are replaced. Before `write` returns, the frame is redacted and on
disk, so that no frame is lost if the writer is killed. If a secret is spread over several frames, it is found only at the
end of the recording. At the end, the frames with parts of a secret are rewritten, in a copy that atomically replaces the
file. The same redactor is used for single frames and for chunks, so that a secret has the same placeholder in the whole
file.
"""

from __future__ import annotations

import os
import shutil
from typing import NamedTuple

from codex_replay.core.cassette.frames import BadLine, Frame, Header, encode_frame, parse_line
from codex_replay.core.redact.chunks import with_chunks
from codex_replay.core.redact.encoded_body import Unseen, left_out, redacted
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.redact.streamed import Secret, Streams, findings_text
from codex_replay.core.text.error_text import error_text
from codex_replay.protocol.recordings.codex_version import LONGEST, codex_version
from codex_replay.shell.cassettes.file import CassetteError, CassetteWriter
from codex_replay.shell.codex.origin import bundle_of
from codex_replay.shell.files.atomic import replacing

#: Bytes by which a header grows at most when it gets a version and the `sha256:...` of a bundle, each in place of "unknown".
HEADER_ROOM = LONGEST + len("sha256:") + 64 - 2 * len("unknown")
_MOST = 5  # places that a sentence names


class Rewritten(NamedTuple):
    """The result of `rewrite`: the secrets that were split across chunks, and the numbers of the rewritten frames."""

    secrets: list[Secret]
    frames: list[int]


class NotRewritten(CassetteError):
    """A cassette contains secrets in chunks, and rewriting the file failed.

    `secrets` has the kinds and places of the secrets, but not their text.
    """

    def __init__(self, path: str, secrets: list[Secret], why: str) -> None:
        self.secrets = secrets
        literal = " --literal TEXT" if any(one.kind == "literal" for one in secrets) else ""
        super().__init__(
            f"{path}, line {secrets[0].first + 1} (frame {secrets[0].first}): it contains {secrets_text(secrets)}, and "
            f"could not be rewritten ({why}); run `codex-replay cassette redact {path}{literal} --out FILE`, and keep only "
            "that FILE."
        )


def secrets_text(secrets: list[Secret]) -> str:
    """Return the beginning of a sentence about secrets, with their number, kinds and places, but without their texts."""
    places = list(dict.fromkeys(f"{one.first} to {one.last}" if one.first != one.last else f"{one.first}" for one in secrets))
    more = f" and in {len(places) - _MOST} more places" if len(places) > _MOST else ""
    where = f"frame{'s' if len(places) > 1 or ' ' in places[0] else ''} {', '.join(places[:_MOST])}{more}"
    return f"{findings_text([one.kind for one in secrets])} streamed in chunks in {where}"


class WholeWriter:
    """Redact each frame before a `CassetteWriter` writes it, and remember the chunks in the frame.

    `unnamed` is the header that was written without a Codex version, or None if the header names the version. The first
    frame that names the Codex version changes the header (`codex_version`). `room` of the `CassetteWriter` must be
    `HEADER_ROOM`, so that the header can become longer.
    """

    def __init__(self, writer: CassetteWriter, redactor: Redactor, unnamed: Header | None = None) -> None:
        self.path = writer.path
        self.frames = 0
        self._writer = writer
        self._unnamed = unnamed
        self._redactor = redactor
        self._streams = Streams()
        self._unseen = Unseen()
        self._kept = writer.keep()  # the lock: no other process writes to the file before `rewrite` is done

    def write(self, frame: Frame) -> bool:
        """Write one frame with its secrets replaced.

        Return True if the frame had secrets. A body that cannot be searched for secrets is omitted.
        """
        self.frames += 1
        if frame.seam == "rpc" and self._streams.carry_on(frame.raw, self.frames):
            clean = redacted(frame, self._redactor)
            self._writer.write(clean, canonical=clean is frame)
            return clean is not frame
        self._streams.add(frame, self.frames)
        clean = redacted(left_out(frame) if self._unseen.encoding(frame) else frame, self._redactor)
        self._writer.write(clean)
        if self._unnamed is not None and (version := codex_version(clean)) is not None:
            header = Header(version, bundle_of(version), self._unnamed.case, self._unnamed.origin, self._unnamed.extra)
            self._writer.change_header(header)
            self._unnamed = None
        return clean is not frame

    def abandon(self) -> None:
        """Close the cassette without a footer."""
        self._writer.abandon()
        self._let_go()

    def close(self) -> None:
        """Close the cassette with a footer."""
        self._writer.close()

    def rewrite(self) -> Rewritten:
        """Replace the secrets that were streamed in chunks, in the complete cassette.

        A cassette that is not a regular file (a pipe, a device) cannot be rewritten and stays unchanged. Raises `NotRewritten` if
        the file cannot be rewritten.
        """
        try:
            return self._rewrite()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._kept >= 0:
            os.close(self._kept)
            self._kept = -1

    def _rewrite(self) -> Rewritten:
        pieces = self._streams.rewritten(self._redactor)
        if not pieces or not os.path.isfile(self.path):
            return Rewritten([], [])
        path = os.path.realpath(self.path)
        secrets = list(self._streams.secrets(self._redactor))
        try:
            if self._kept >= 0 and not os.path.samestat(os.fstat(self._kept), os.stat(path)):
                raise ValueError("another file now has this name; it is left unchanged")
            changed = self._changed(path, pieces)
            if changed:
                with replacing(path) as draft:
                    _copy(path, draft, changed)
        except (OSError, BadLine, ValueError, LookupError) as error:
            if not secrets:  # each frame is clean by itself, and nothing else was found
                return Rewritten([], [])
            raise NotRewritten(self.path, secrets, error_text(error)) from None
        return Rewritten(secrets if changed else [], sorted(changed))

    def _changed(self, path: str, pieces: dict[int, dict[int, bytes]]) -> dict[int, bytes]:
        """Return the lines that change, by the numbers of their frames."""
        changed = {}
        with open(path, "rb") as file:
            for number, line in enumerate(file):
                if number in pieces and line.endswith(b"\n"):
                    frame = parse_line(line)
                    assert isinstance(frame, Frame)
                    new = encode_frame(redacted(with_chunks(frame, pieces[number]), self._redactor))
                    if new != line:
                        changed[number] = new
        return changed


def _copy(path: str, draft: str, changed: dict[int, bytes]) -> None:
    with open(path, "rb") as old, open(draft, "wb") as new:
        for number, line in enumerate(old):
            new.write(changed.get(number, line))
    shutil.copymode(path, draft)
