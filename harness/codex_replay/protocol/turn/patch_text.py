"""Parse patches in the language of apply_patch as strictly as Codex 0.92.0, also inside shell commands.

The real Codex ignores white space around the patch and CRLF, removes a heredoc around the patch, and reports the first wrong line
with its number. The program fake-codex loads this module at start-up.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_HEREDOCS = ("<<EOF", "<<'EOF'", '<<"EOF"')
_HEADERS = "Valid hunk headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'"
_NO_LINES = "Update hunk does not contain any lines"
_IMPLICIT = 'patch detected without explicit call to apply_patch. Rerun as ["apply_patch", "<patch>"]'
_PROGRAMS = ("apply_patch", "applypatch")


class BadPatch(ValueError):
    """The patch cannot be read; the text is the output that the real Codex sends to the model."""


class Hunk:
    """The change of a patch to one file.

    `kind` is "add", "delete" or "update"; `body` has the lines of the change (for "add", without the `+`).
    """

    __slots__ = ("body", "kind", "move", "path")

    def __init__(self, kind: str, path: str, body: list[str], move: str | None = None) -> None:
        self.kind, self.path, self.body, self.move = kind, path, body, move

    def change(self) -> dict[str, Any]:
        """Return the change in the form for events; values that the patch does not contain stay empty."""
        if self.kind == "add":
            return {"type": "add", "content": "".join(line + "\n" for line in self.body)}
        if self.kind == "delete":
            return {"type": "delete", "content": ""}
        return {"type": "update", "unified_diff": "".join(line + "\n" for line in self.body), "move_path": self.move}


def hunks_of(text: str) -> list[Hunk]:
    """Return the hunks of a patch; raises `BadPatch` if the patch is invalid."""
    lines = _inner([line.removesuffix("\r") for line in text.strip().split("\n")] if text.strip() else [])
    hunks: list[Hunk] = []
    at = 1
    while at < len(lines) - 1:
        hunk, at = _hunk(lines[:-1], at)
        hunks.append(hunk)
    return hunks


def _inner(lines: list[str]) -> list[str]:
    wrong = _boundaries(lines)
    if wrong is None:
        return lines
    if len(lines) >= 4 and lines[0] in _HEREDOCS and lines[-1].endswith("EOF") and _boundaries(lines[1:-1]) is None:
        return lines[1:-1]
    raise BadPatch(f"invalid patch: {wrong}")


def _boundaries(lines: Sequence[str]) -> str | None:
    if lines and lines[0].strip() != _BEGIN:
        return f"The first line of the patch must be '{_BEGIN}'"
    return None if lines and lines[-1].strip() == _END else f"The last line of the patch must be '{_END}'"


def _wrong(line: int, why: str) -> BadPatch:
    return BadPatch(f"invalid hunk at line {line}, {why}")


def _hunk(lines: Sequence[str], at: int) -> tuple[Hunk, int]:
    """Read the hunk that begins at the line index `at` (from 0); return the hunk and the index of the next line."""
    head = lines[at].strip()
    kind, colon, path = head.partition(" File: ")
    if not colon or kind not in ("*** Add", "*** Delete", "*** Update"):
        raise _wrong(at + 1, f"'{head}' is not a valid hunk header. {_HEADERS}")
    start, at = at, at + 1
    if kind == "*** Add":
        while at < len(lines) and lines[at].startswith("+"):
            at += 1
        return Hunk("add", path, [line[1:] for line in lines[start + 1 : at]]), at
    if kind == "*** Delete":
        return Hunk("delete", path, []), at
    move = None
    if at < len(lines) and lines[at].startswith("*** Move to: "):
        move, at = lines[at].removeprefix("*** Move to: "), at + 1
    body: list[str] = []
    first = True
    while at < len(lines):
        if not lines[at].strip():
            at += 1
        elif lines[at].startswith("***"):
            break
        else:
            behind = _chunk(lines, at, first)
            body += [line for line in lines[at:behind] if not line.startswith("***")]
            at, first = behind, False
    if first:
        raise _wrong(start + 1, f"Update file hunk for path '{path}' is empty")
    return Hunk("update", path, body, move), at


def _chunk(lines: Sequence[str], at: int, first: bool) -> int:
    """Return the line index after a chunk of an update."""
    marked = lines[at] == "@@" or lines[at].startswith("@@ ")
    if not marked and not first:
        raise _wrong(at + 1, f"Expected update hunk to start with a @@ context marker, got: '{lines[at]}'")
    begin = behind = at + marked
    while behind < len(lines):
        line = lines[behind]
        if line == "*** End of File" and behind > begin:
            return behind + 1
        if line and line[0] not in " +-":
            if behind == begin and line != "*** End of File":
                why = "Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)"
                raise _wrong(at + 2, f"Unexpected line found in update hunk: '{line}'. {why}")
            break
        behind += 1
    if behind == begin:
        raise _wrong(at + 2, _NO_LINES)
    return behind


def parse_patch(text: str) -> dict[str, dict[str, Any]]:
    """Return the changes of a patch, by path; raises `BadPatch` if the patch is invalid.

    Values that a patch does not contain stay empty: the content of a deleted file, and the line numbers of an updated file.
    """
    return {hunk.path: hunk.change() for hunk in hunks_of(text)}


def summary_lines(patch: str) -> str:
    """Return the lines that the real apply_patch prints about the added, modified and deleted files."""
    marks = {"add": "A", "update": "M", "delete": "D"}
    hunks = hunks_of(patch)
    return "".join(f"{marks[kind]} {hunk.move or hunk.path}\n" for kind in marks for hunk in hunks if hunk.kind == kind)


def readable(patch: str) -> bool:
    """Return True if the patch can be read, even if it has no change."""
    try:
        hunks_of(patch)
    except BadPatch:
        return False
    return True


# -- patches in shell commands --------------------------------------------------------------------------------------------


def patch_in(argv: Sequence[str]) -> tuple[str, str | None] | None:
    """Return the patch in a shell command, and the directory to which the command changes first.

    Return None for a command without a patch.

    Raises `BadPatch` for a command that is only a patch, without a call of apply_patch.
    """
    if len(argv) == 2 and argv[0] in _PROGRAMS:
        return argv[1], None
    script = argv[0] if len(argv) == 1 else None
    if len(argv) == 3 and argv[0].rpartition("/")[2] in ("bash", "zsh", "sh") and argv[1] in ("-lc", "-c"):
        script = argv[2]
        if (found := _heredoc(script)) is not None:
            return found
    if script is not None and script.lstrip().startswith((_BEGIN, "<<")):
        try:
            hunks_of(script)
        except BadPatch:
            return None
        raise BadPatch(_IMPLICIT)
    return None


def _heredoc(script: str) -> tuple[str, str | None] | None:
    head, _, rest = script.strip().partition("\n")
    folder = None
    before, both, command = head.partition("&&")
    if both:
        words = before.split(None, 1)
        if len(words) != 2 or words[0] != "cd":
            return None
        folder = words[1].strip()
        if folder[:1] in ("'", '"') and folder[-1:] == folder[:1]:
            folder = folder[1:-1]
        elif " " in folder:
            return None
    program, mark, word = (command if both else head).partition("<<")
    if not mark or program.strip() not in _PROGRAMS:
        return None
    word = word.strip()
    delimiter = word[1:-1] if word[:1] in ("'", '"') and word[-1:] == word[:1] else word
    body, newline, last = rest.rpartition("\n")
    if not delimiter or not newline or last != delimiter or f"\n{delimiter}\n" in f"\n{body}\n":
        return None
    return body, folder
