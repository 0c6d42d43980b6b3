"""Check a cassette for errors, and read it as a stream.

The function `lint` reads the file line by line and passes each frame to small checks. Each check stores only the facts that
it needs, so that a long file needs little memory. The result of a check is a `LintFinding`: an "error" (the user must not
trust the file) or a "note" (harmless information). The argument `checks` adds more checks, such as the validation against a
schema bundle.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jsonschema_rs

from codex_replay.core.cassette.frames import Frame, Header, encode_frame, encode_header
from codex_replay.core.redact.encoded_body import Unseen, inside
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.redact.streamed import Streams, findings_text
from codex_replay.core.wire.json_text import NotJson, loads
from codex_replay.core.wire.jsonrpc import kind, label
from codex_replay.protocol import data_tables
from codex_replay.shell.cassettes.file import CassetteError, CassetteReader, cassettes_in, is_readable_once, open_file
from codex_replay.shell.codex.origin import bundle_of


@dataclass(frozen=True, slots=True)
class Remark:
    """The result of one check for one frame, where the caller of `lint` has supplied the check.

    `level` and `check` have the same meaning as in `LintFinding`.
    """

    level: str
    check: str
    message: str


#: A further check; it sees the frames of one file in order.
Check = Callable[[Frame], Iterable[Remark]]


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One finding about a cassette: `check` is a stable name, `line` counts from 1, `frame` is the frame's number if it has one.

    `kind` is the kind of the secret, if the finding is about a secret.
    """

    level: str
    check: str
    line: int
    frame: int | None
    message: str
    kind: str | None = None


@dataclass(slots=True)
class Report:
    """The result of linting one file; `unreadable` is a sentence if the file is not a cassette."""

    path: str
    frames: int = 0
    truncated: str | None = None
    unreadable: str | None = None
    findings: list[LintFinding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True if the report has no findings except notes."""
        return self.unreadable is None and not any(finding.level == "error" for finding in self.findings)


@cache
def _schema() -> jsonschema_rs.Validator:
    path = os.path.join(
        os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "core", "cassette", "cassette.schema.json"
    )
    with open(path, "rb") as file:
        return jsonschema_rs.validator_for(loads(file.read()))


def lint(
    path: str,
    checks: Callable[[Header], Sequence[Check]] = lambda header: (),
    step: Callable[[], None] = lambda: None,
    redactor: Redactor | None = None,
) -> Report:
    """Check one cassette file for errors.

    The function `step` is called after each frame, to show the progress. If the file is invalid, no exception is raised:
    the report contains the error. The function `checks` gets the header of the cassette and returns further checks. A text
    that `redactor` would replace counts as a secret.
    """
    report = Report(path)
    if is_readable_once(path):
        report.unreadable = f"{path}: this is a pipe or a device, and lint reads a cassette twice; name a file."
        return report
    try:
        with CassetteReader(path) as reader:
            _Linter(report, checks(reader.header), step, redactor or Redactor()).run(reader)
    except CassetteError as error:
        report.unreadable = str(error)
    return report


def remedy(path: str, them: str = "it") -> str:
    """Return what to do about a secret in a file."""
    return f"remove {them} with `codex-replay cassette redact {path}`"


class _Linter:
    """The checks on one file, and their state between frames."""

    def __init__(self, report: Report, checks: Sequence[Check], step: Callable[[], None], redactor: Redactor) -> None:
        self._report = report
        self._checks = checks
        self._step = step
        self._redactor = redactor
        self._streams = Streams()
        self._unseen = Unseen()
        self._remedy = remedy(report.path)
        self._time = 0.0
        self._number = 0  # of the frame before
        self._asked: dict[tuple[str, str], list[Frame]] = {}  # (sender, id) -> requests without a reply
        self._ids: set[tuple[str, str]] = set()  # ids that were asked at some time
        # connection -> kind of the server's latest frame, and the number of open requests
        self._conns: dict[int | None, tuple[str | None, int]] = {}
        self._upgraded: dict[int | None, tuple[int, Frame]] = {}  # connection -> line and frame of a 101 with no message yet
        self._seen: set[str] = set()  # "rpc.client" and so on

    def run(self, reader: CassetteReader) -> None:
        """Check every line of the cassette."""
        header = encode_header(reader.header)
        self._line_checks(header, 1, None)
        with open_file(reader.path) as file:
            if file.readline().rstrip(b" \n") != header.rstrip(b"\n"):  # a recorder leaves room for a version
                self._add("error", "form", 1, None, "the header is not in canonical form: keys in order, no spaces")
        if wrong := _foreign_bundle(reader.header):
            self._add("error", "version", 1, None, wrong)
        try:
            self._frames(reader)
        except CassetteError as error:
            place = f"{reader.path}, line {reader.line}: "  # which the finding has itself
            self._add("error", "line", reader.line, None, str(error).removeprefix(place))
        self._end(reader)

    def _frames(self, reader: CassetteReader) -> None:
        while True:
            line = reader.read_line()
            frame = reader.parse(line, damaged=True)
            if frame is None:
                break
            self._report.frames += 1
            self._frame(frame, line, reader.line)
            self._step()

    def _add(self, level: str, check: str, line: int, frame: Frame | None, message: str, kind: str | None = None) -> None:
        self._report.findings.append(LintFinding(level, check, line, None if frame is None else frame.n, message, kind))

    def _frame(self, frame: Frame, line: bytes, number: int) -> None:
        readable = self._line_checks(line, number, frame)
        if frame.n != self._number + 1:
            # Told where the numbers break off, and not of every frame that follows.
            before = f"frame {self._number} precedes it" if self._number else "it is the first"
            self._add("error", "numbering", number, frame, f"the frame has the number {frame.n}, but {before}")
        self._number = frame.n
        if frame.t < self._time:
            self._add(
                "error", "time", number, frame, f"the frame has t = {frame.t:g} s, but the frame before it has {self._time:g} s"
            )
        self._time = max(self._time, frame.t)
        if readable and encode_frame(frame) != line:
            self._add("error", "form", number, frame, _form(line))
        self._seen.add(f"{frame.seam}.{frame.sender}")
        self._streams.add(frame, self._report.frames)
        self._bodies(frame, number)
        if not frame.whole:
            self._add("note", "cut-payload", number, frame, "the payload was already cut for size in the imported file")
        if frame.seam == "rpc":
            self._pairing(frame, number)
        else:
            self._connection(frame, number)
        for check in self._checks if readable else ():
            for remark in check(frame):
                self._add(remark.level, remark.check, number, frame, remark.message)

    def _line_checks(self, line: bytes, number: int, frame: Frame | None) -> bool:
        """Check one line of the cassette as text. Return True if the line is JSON, so that the other checks can read it."""
        try:
            value = loads(line)
        except NotJson as reason:
            self._add("error", "schema", number, frame, f"the line is not JSON ({reason})")
            return False
        try:
            errors = list(_schema().iter_errors(value))
        except UnicodeEncodeError:
            self._add("error", "schema", number, frame, "the line has half a surrogate pair")
            return False
        for error in errors:
            where = "".join(f"[{part!r}]" for part in error.instance_path)
            message = self._redactor.text(error.message)  # it quotes the value
            self._add("error", "schema", number, frame, f"{where or 'the line'}: {message[:200]}")
        found = self._redactor.findings(line)
        if frame is not None and b'"base64":' in line and not found:
            found = self._redactor.findings(frame.raw if frame.seam == "rpc" else inside(frame) or b"")
        for what, start, end in found:
            # Never the secret itself: what lint prints ends up in logs.
            text = f"{findings_text([what])} of {end - start} bytes is at byte {start}; {self._remedy}"
            self._add("error", "secret", number, frame, text, what)
        return True

    def _bodies(self, frame: Frame, number: int) -> None:
        """Report the bodies that cannot be searched for secrets."""
        if encoding := self._unseen.encoding(frame):
            text = f"a body in the content-encoding {encoding!r} cannot be searched for secrets"
            self._add("error", "unseen", number, frame, f"{text}; {self._remedy}")
        elif frame.seam == "http" and type(frame.payload) is dict and "omitted" in frame.payload:
            self._add(
                "note", "omitted", number, frame, "a body or message was left out because it could not be searched for secrets"
            )

    def _streamed(self) -> None:
        """Report the secrets that are visible only in the joined chunks of a stream."""
        for what, size, first, last in self._streams.secrets(self._redactor):
            where = f"split across the frames {first} to {last}" if first != last else f"in the payload of frame {first}"
            text = f"{findings_text([what])} of {size} bytes is {where}; {self._remedy}"
            # A frame's number is its place in a sound file, and its line the one after that.
            self._report.findings.append(LintFinding("error", "secret", first + 1, first, text, what))

    def _pairing(self, frame: Frame, number: int) -> None:
        sort = kind(frame.value)
        if sort == "request":
            key = (frame.sender, repr(frame.value["id"]))
            self._asked.setdefault(key, []).append(frame)
            self._ids.add(key)
        elif sort in ("response", "error"):
            key = ("server" if frame.sender == "client" else "client", repr(frame.value["id"]))
            if waiting := self._asked.get(key):
                waiting.pop(0)
            elif sort == "response" or frame.value["id"] is not None:
                why = "was already answered" if key in self._ids else "was never sent"
                text = f"{label(frame.value)} from the {frame.sender}: that request {why}"
                self._add("note" if frame.sender == "client" else "error", "pairing", number, frame, text)

    def _connection(self, frame: Frame, number: int) -> None:
        before, asked = self._conns.get(frame.conn, (None, 0))  # requests may be pipelined, so they are only counted
        if frame.kind == "request":
            fits, after = before != "ws", (before, asked + 1)
        else:
            allowed = {
                "response": (None, "response", "close"),
                "sse": ("response", "sse", "chunk"),
                "chunk": ("response", "sse", "chunk"),
                "ws": ("response", "ws"),
                "close": (None, "response", "sse", "chunk", "ws", "close"),
            }[frame.kind]
            fits, after = before in allowed and asked > 0, (frame.kind, max(0, asked - (frame.kind == "close")))
        if not fits:
            why = f"cannot follow {before!r}" if before and asked else f"needs an open {'response' if asked else 'request'}"
            self._add("error", "connection", number, frame, f"connection {frame.conn}: {frame.kind!r} {why}")
        self._conns[frame.conn] = after
        if frame.kind == "response" and frame.payload["status"] == 101:
            self._upgraded[frame.conn] = (number, frame)
        elif frame.kind == "ws" or (frame.kind == "close" and frame.extra.get("messages") == 0):
            self._upgraded.pop(frame.conn, None)

    def _end(self, reader: CassetteReader) -> None:
        report = self._report
        self._streamed()
        for conn, (number, frame) in self._upgraded.items():
            text = f"connection {conn} was upgraded (101), but its messages are missing in the cassette"
            self._add("error", "unrecorded", number, frame, text)
        if not report.frames:
            self._add("note", "empty", reader.line, None, "the cassette has no frame, so it cannot verify anything")
        if reader.truncated:
            report.truncated = reader.truncated
            self._add("error", "truncated", reader.line, None, "the recording was cut short: it has no footer")
        elif reader.footer is not None:
            if reader.footer.frames != report.frames:
                text = f"the footer counts {reader.footer.frames} frames, but there are {report.frames}"
                self._add("error", "footer", reader.line, None, text)
            if reader.read_line():
                self._add("error", "footer", reader.line, None, "lines follow the footer")
        for seen in sorted(self._seen):
            if origin_of(reader.header, *seen.split(".")) is None:
                text = f"the header has no origin (recorded or authored) for the {seen.replace('.', ' ')} frames"
                self._add("error", "origin", 1, None, text)
        for (sender, _), waiting in self._asked.items():
            for frame in waiting:
                self._add("note", "pairing", frame.n + 1, frame, f"{label(frame.value)} of the {sender} has no reply")


def origin_of(header: Header, seam: str, sender: str) -> str | None:
    """Return the origin of one direction of a seam, "recorded" or "authored".

    Return None if the header does not name the origin.
    """
    origin: Any = header.origin
    return origin.get(f"{seam}.{sender}") or origin.get(seam) if type(origin) is dict else None


def _foreign_bundle(header: Header) -> str | None:
    """Return a sentence if the bundle in a cassette header belongs to another Codex version than the version in the header.

    Return None if the bundle belongs to the version, or if the bundle is unknown.
    """
    known = {version: bundle_of(version) for version in data_tables.versions()}
    whose = next((version for version, identity in known.items() if identity == header.bundle), None)
    if whose is not None and whose != header.codex:
        return f"the header names Codex {header.codex}, but its bundle belongs to {whose}; record the cassette again"
    if header.bundle.startswith("sha256:") and header.codex in known and whose is None:
        return (
            f"the header's bundle does not belong to Codex {header.codex}, the version in the header; record the cassette again"
        )
    return None


def _form(line: bytes) -> str:
    if b',"msg":' in line:
        return "the message is not in the form that serde_json writes, so 'msg' would change its bytes; use 'text'"
    content = loads(line)
    try:
        if "view" in content and loads(str(content.get("text")).encode()) != content["view"]:
            return "'view' is not the decoded 'text': the line was edited by hand; record the cassette again"
    except NotJson:
        pass
    return "the line is not in canonical form (keys in order, no spaces, 'msg' for canonical bytes); record the cassette again"


def find_files(paths: Iterable[str], note: Callable[[str], None] = lambda text: None) -> Iterator[str]:
    """Yield the cassettes that `paths` name: files, and the sorted cassettes in folders.

    Raises `CassetteError` for a folder without cassettes.

    `note` is called with a sentence for each skipped file in a folder.
    """
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        found, left_out = cassettes_in(path)
        for text in left_out:
            note(text)
        if not found:
            raise CassetteError(f"{path}: there is no cassette (*.ndjson) in this folder.")
        yield from found
