"""Read and write cassette files as a stream, one line at a time, whatever their length.

Every error is a `CassetteError`, whose message is a sentence with the file and the line. The module imports only the core,
because fake-codex loads it at start-up.
"""

from __future__ import annotations

from posix import fstat

from codex_replay.core.cassette.frames import (
    BadLine,
    Footer,
    Frame,
    Header,
    encode_footer,
    encode_frame,
    encode_header,
    parse_line,
    why_no_message,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from types import TracebackType
    from typing import BinaryIO

    from codex_replay.core.redact.redactor import Redactor


class CassetteError(Exception):
    """A cassette cannot be read or written.

    The message of a `CassetteError` names the file and the line, and says what the user can do next.
    """


def open_file(path: str) -> BinaryIO:
    """Open a cassette in a folder or in an archive (see `archive`) to read its bytes.

    Raises `OSError` if the file cannot be opened.
    """
    try:
        return open(path, "rb")
    except NotADirectoryError:
        import io

        from codex_replay.shell.files.archive import read

        return io.BytesIO(read(path))


def is_readable_once(path: str) -> bool:
    """Return True for the path of a pipe, a socket or a device, whose bytes cannot be read a second time."""
    import os  # as below

    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def is_device(file: BinaryIO) -> bool:
    """Return True for an open file that is a device, such as /dev/zero, which may never send a line end."""
    try:
        return fstat(file.fileno()).st_mode & 0o170000 in (0o020000, 0o060000)
    except OSError:  # a file of an archive has no descriptor
        return False


def cassettes_in(folder: str) -> tuple[list[str], list[str]]:
    """Return the sorted cassettes (`*.ndjson`) in a folder and its subfolders, and a sentence for each skipped file.

    The folder may be inside an archive. Files with the traces of a report are skipped, because `--report` may have written
    them into the folder. Raises `CassetteError` for a folder that cannot be read.
    """
    import os  # not needed for one cassette, and it costs a tenth of fake-codex's start-up

    def unreadable(error: OSError) -> None:
        raise CassetteError(f"{error.filename}: the folder cannot be read ({error.strerror}); check the path.") from None

    if os.path.isfile(folder):
        from codex_replay.shell.files.archive import names as names_in

        try:
            return [f"{folder}/{name}" for name in names_in(folder) if name.endswith(".ndjson")], []
        except OSError as error:
            unreadable(error)
    walked = os.walk(folder, onerror=unreadable)
    paths = sorted(os.path.join(where, name) for where, _, names in walked for name in names if name.endswith(".ndjson"))
    pipes = [path for path in paths if os.path.exists(path) and not os.path.isfile(path)]  # to open one could wait forever
    paths = [path for path in paths if path not in pipes] if pipes else paths
    traces = [path for path in paths if os.path.basename(path) == "stories.ndjson" and _are_traces(path)]
    notes = [f"{path}: skipped; it holds the traces of a report and is not a cassette." for path in traces]
    notes += [f"{path}: skipped; it is a pipe or a device and not a file." for path in pipes]
    return [path for path in paths if path not in traces], notes


def _are_traces(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(8) in (b"", b'{"case":')  # a run whose cases have no trace leaves an empty file
    except OSError:
        return False  # for the reader to complain of


class CassetteReader:
    """A reader of one cassette as a stream: it reads the header immediately, and the frames on demand.

    `footer` is set after the last frame. A recording that was cut short is readable up to its last complete frame; then
    `truncated` has a sentence. A file that is not a cassette, or a damaged line before the last line, raises `CassetteError`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = str(path)
        self.footer: Footer | None = None
        self.truncated: str | None = None
        self._line = 0
        try:
            self._file = open_file(self.path)  # closed by close()
            if is_device(self._file):
                self._file.close()
                raise CassetteError(f"{self.path}: this is a device, which may never end; name a cassette file.")
        except OSError as error:
            if isinstance(error, IsADirectoryError):
                raise CassetteError(f"{self.path} is a folder; name one cassette file (*.ndjson) in it.") from None
            raise CassetteError(f"{self.path}: the cassette cannot be opened ({error.strerror}); check the path.") from None
        try:
            self.header = self._read_header()
        except BaseException:
            self._file.close()
            raise

    def _read_header(self) -> Header:
        line = self.read_line()
        if not line:
            raise CassetteError(f"{self.path}: the file is empty, so it is not a cassette; record it again.")
        try:
            header = parse_line(line)
        except BadLine as error:
            raise CassetteError(
                f"{self.path}, line 1: this is not a cassette header: {error}; see docs/cassette-format.md."
            ) from None
        if not isinstance(header, Header):
            raise CassetteError(f"{self.path}, line 1: the first line is not a cassette header; record it again.")
        return header

    def __iter__(self) -> Iterator[Frame]:
        while (frame := self.read()) is not None:
            yield frame

    def read_line(self) -> bytes:
        """Return the next line of the cassette undecoded, or b"" at the end of the file.

        A replay reads undecoded lines, because it need not decode every frame.
        """
        try:
            line = self._file.readline()
        except OSError as error:
            raise CassetteError(f"{self.path}: the cassette cannot be read ({error.strerror}).") from None
        self._line += 1
        return line

    def place(self, line: bytes) -> int | None:
        """Return the offset of the last line that was read, or None if the file cannot be read twice (a pipe)."""
        try:
            return self._file.tell() - len(line)
        except OSError:
            return None

    def lines_at(self, place: int, end: int, most: int) -> list[bytes]:
        """Return the lines of the cassette from the offset `place` up to `end`, or until they have `most` bytes.

        The position for `read_line` does not change.
        """
        lines = []
        try:
            here = self._file.tell()
            self._file.seek(place)
            while place < end and most > 0:
                line = self._file.readline()
                if not line:
                    raise CassetteError(f"{self.path}: the cassette became shorter while it was read.")
                lines.append(line)
                place += len(line)
                most -= len(line)
            self._file.seek(here)
        except OSError as error:
            raise CassetteError(f"{self.path}: the cassette cannot be read ({error.strerror}).") from None
        return lines

    def read(self) -> Frame | None:
        """Return the next frame, or None after the last frame."""
        if self.footer or self.truncated:
            return None
        frame = self.parse(self.read_line())
        if self.footer and self.read_line():
            raise CassetteError(
                f"{self.path}, line {self._line}: more lines follow the footer. One file holds one recording: split the file."
            )
        return frame

    def parse(self, line: bytes, damaged: bool = False) -> Frame | None:
        """Return the frame of a line from `read_line`, or None if the line ends the cassette.

        With `damaged`, a frame is returned even if its message is not JSON, for callers that examine such a frame.
        """
        if not line:
            self.truncated = f"{self.path}: the recording was cut short after line {self._line - 1} (it has no footer)."
            return None
        try:
            item = parse_line(line)
        except BadLine as error:
            if not line.endswith(b"\n"):
                self.truncated = f"{self.path}: the recording was cut short in line {self._line}; that line is ignored."
                return None
            raise self._damaged(str(error)) from None
        if isinstance(item, Footer):
            self.footer = item
            return None
        if isinstance(item, Header):
            raise CassetteError(
                f"{self.path}, line {self._line}: this is a second header. One file holds one recording: split the file."
            )
        if not damaged and (why := why_no_message(item, line)):
            raise self._damaged(why)
        return item

    def _damaged(self, why: str) -> CassetteError:
        return CassetteError(f"{self.path}, line {self._line}: {why}; record the cassette again, or remove the line.")

    @property
    def line(self) -> int:
        """The number of the line that was read last; the first line is 1."""
        return self._line

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> CassetteReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class CassetteWriter:
    """A writer of one cassette.

    When `write` returns, the operating system has the frame. Secrets in a frame are replaced before the frame is written.
    The writer numbers the frames from 1. Until `close` has written the footer, the cassette counts as truncated. `room` is
    the number of bytes that are reserved behind the header, because `change_header` may make the header longer.
    """

    def __init__(self, path: str | os.PathLike[str], header: Header, redactor: Redactor | None = None, *, room: int = 0) -> None:
        import os  # a reader has no need of it, and it costs a tenth of fake-codex's start-up
        import stat

        self._os = os
        self.path = str(path)
        self.frames = 0
        self._redactor = redactor
        self._header = len(encode_header(header)) + room  # bytes
        try:
            self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise CassetteError(
                f"{self.path}: the cassette cannot be written ({error.strerror}); choose another place."
            ) from None
        self._is_file = stat.S_ISREG(os.fstat(self._fd).st_mode)  # and no pipe or device
        try:
            if self._is_file:
                self._take_over()
            self._put(encode_header(header, self._header))
        except CassetteError:
            if self._is_file and self.is_in_place and os.fstat(self._fd).st_size == 0:
                os.unlink(self.path)
            self.abandon()
            raise

    @classmethod
    def claimed(cls, path: str, header: Header, redactor: Redactor | None = None) -> CassetteWriter:
        """Return a writer to a new file: `path` (see `claim`), or a file with a number if `path` exists."""
        from contextlib import suppress

        from codex_replay.shell.cassettes.claim import claim

        with suppress(OSError):  # the writer reports why
            path = claim(path)
        return cls(path, header, redactor)

    def _take_over(self) -> None:
        """Lock the cassette file for the writer, and empty the file.

        If another process writes to the cassette file, raise CassetteError and do not change the file.
        """
        import fcntl

        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._busy() from None
        except OSError:
            pass  # a file system without locks
        if not self.is_in_place:
            raise self._busy()
        self._os.ftruncate(self._fd, 0)

    def _busy(self) -> CassetteError:
        from codex_replay.shell.cassettes.claim import BUSY

        return CassetteError(f"{self.path}: {BUSY}.")

    @property
    def is_in_place(self) -> bool:
        """True if the writer's path still leads to the file that the writer writes."""
        try:
            return self._os.path.samestat(self._os.fstat(self._fd), self._os.stat(self.path))
        except OSError:
            return False

    def keep(self) -> int:
        """Return a file descriptor that keeps the lock on the file after `close`. The caller must close the descriptor."""
        return self._os.dup(self._fd)

    def change_header(self, header: Header) -> bool:
        """Overwrite the header in the file.

        Return False if the new header is too long, or if the cassette is not a regular file (a pipe, a device). The frames
        in the cassette stay unchanged. If the writer is killed meanwhile, the cassette has either the old or the new
        header.
        """
        line = encode_header(header, self._header)
        if not self._is_file or len(line) != self._header:
            return False
        try:
            return self._os.pwrite(self._fd, line, 0) == len(line)
        except OSError:  # the old header stays
            return False

    def write(self, frame: Frame, canonical: bool = False) -> None:
        """Number, redact and append one frame to the cassette.

        `canonical` has the same meaning as in `encode_frame`; use it only for frames that are already redacted.
        """
        self.frames += 1
        frame.n = self.frames
        if self._redactor is not None and frame.seam == "rpc":
            clean = self._redactor.redact(frame.raw)
            if clean != frame.raw:
                frame = Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, clean, extra=frame.extra)
        elif self._redactor is not None:
            payload = self._redactor.value(frame.payload)
            frame = Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, b"", payload, frame.conn, extra=frame.extra)
        self._put(encode_frame(frame, canonical))

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._os.write(self._fd, view) :]
            except OSError as error:
                raise CassetteError(
                    f"{self.path}: writing frame {self.frames} failed ({error.strerror}); the cassette ends before it."
                ) from None

    def close(self) -> None:
        """Write the footer and close the file; a second call does nothing."""
        if self._fd < 0:
            return
        try:
            self._put(encode_footer(Footer(self.frames)))
        finally:
            self._os.close(self._fd)
            self._fd = -1

    def abandon(self) -> None:
        """Close the file without a footer, so that the file counts as truncated."""
        if self._fd >= 0:
            self._os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> CassetteWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write the footer, unless an exception ended the recording. Without a footer, the file counts as truncated."""
        if kind is None:
            self.close()
        else:
            self.abandon()
