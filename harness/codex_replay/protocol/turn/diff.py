"""Compute the changes of patches and the diff of a turn, from texts only, without reading or writing files.

`changes_of` returns the changes of an apply_patch call. The changes of a call come from the script's `result.changes`; otherwise
they are read from the patch, as far as possible. `TurnDiff` joins the changes of a turn into one diff in git's form. The real
Codex sends the diff of a turn after each patch. In recordings, each path begins with `a//` or `b//`, the ids of blobs are not
shortened, and the files are sorted. `AppliedDiff` is the diff of a turn in versions after 0.92. The program fake-codex loads this
module at start-up.
"""

from __future__ import annotations

from codex_replay.protocol.turn.patch_text import parse_patch
from codex_replay.protocol.turn.tools import join_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_NOTHING = "0" * 40


def changes_of(patch: str, cwd: str, result: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the changes of one call, by absolute path; raises `BadPatch` for a patch that cannot be read."""
    parsed = parse_patch(patch)
    given = result.get("changes", parsed)
    changes = {join_path(cwd, path): dict(change) for path, change in given.items()}
    for change in changes.values():
        if change["type"] == "update":
            change.setdefault("move_path", None)
        if change.get("move_path"):
            change["move_path"] = join_path(cwd, change["move_path"])
    return changes


def shown(changes: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the changes in the form for events: without the texts that only the diff needs."""
    return {path: {k: v for k, v in change.items() if k not in ("old", "new")} for path, change in changes.items()}


def shown_v2(changes: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the changes in the form for v2's fileChange item: a list sorted by path."""
    listed = []
    for path in sorted(changes):
        change = changes[path]
        kind: dict[str, Any] = {"type": change["type"]}
        diff = change.get("content", change.get("unified_diff", ""))
        if change["type"] == "update":
            kind["move_path"] = change.get("move_path")
            if kind["move_path"]:
                diff += f"\n\nMoved to: {kind['move_path']}"
        listed.append({"path": path, "kind": kind, "diff": diff})
    return listed


class TurnDiff:
    """The files that a turn has changed so far.

    For each current path, the object has the original path, and the old and the new text (None if there is no file).
    """

    def __init__(self, base: str = "") -> None:
        self._base = base  # the folder that paths are shown relative to; "" for whole paths
        self._files: dict[str, tuple[str, str | None, str | None, str]] = {}

    def begin(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Store the files that a patch will change, before it is applied.

        The real binary looks for a moved file only at its new path. Therefore, if the user refuses a patch that moves a
        file, the diff of the turn shows the file as deleted, as in recordings.
        """
        for path, change in changes.items():
            if path not in self._files:
                before = _before(change)
                self._files[path] = (path, before, before, "")
            if change.get("move_path"):
                origin, before, _, _ = self._files.pop(path)
                self._files[change["move_path"]] = (origin, before, None, "")

    def apply(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Add the changes of one patch to the diff of the turn, after the patch was applied; call `begin` first."""
        for path, change in changes.items():
            now = change.get("move_path") or path
            origin, before, _, _ = self._files[now]
            self._files[now] = (origin, before, *_after(change))

    def fail(self) -> None:
        """Process a patch that failed: nothing changes."""

    def text(self) -> str:
        """Return the diff of the turn; empty if nothing has changed."""
        whole = ""
        for path in sorted(self._files):
            origin, old, new, hunks = self._files[path]
            whole += _file_diff(self._shown(path), self._shown(origin), old, new, hunks)
            if not whole.endswith("\n"):
                whole += "\n"  # so an unchanged file before all changed ones makes an empty line (recorded)
        return whole if whole.strip() else ""

    def _shown(self, path: str) -> str:
        return path.removeprefix(self._base)


class AppliedDiff(TurnDiff):
    """The files that the applied patches of a turn have changed so far, in versions after 0.92.

    Refused patches and unchanged files are not in the diff. After a failed patch, the diff of the turn stays empty.
    """

    def __init__(self, base: str = "") -> None:
        super().__init__(base)
        self._origins: dict[str, str] = {}  # the original path of each moved file, by its new path
        self._known = True

    def begin(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Do nothing: a patch counts when it is applied."""

    def apply(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Add the changes of one patch to the diff of the turn, after the patch was applied."""
        for path, change in changes.items():
            _, before, _, _ = self._files.get(path, ("", _before(change), None, ""))
            now = change.get("move_path") or path
            if now != path:
                self._files[path] = (path, before, None, "")
                _, before, _, _ = self._files.get(now, ("", None, None, ""))
                self._origins[now] = self._origins.pop(path, path)
            elif change["type"] != "update":
                self._origins.pop(path, None)
            self._files[now] = (now, before, *_after(change))

    def fail(self) -> None:
        """Process a patch that failed: it may have changed any file, so the diff is unknown."""
        self._known = False

    def text(self) -> str:
        """Return the diff of the turn; empty if nothing has changed, or if a patch has failed.

        A moved file is at the place of its original path if it was there before the turn, and is not there now.
        """
        moved = {origin: now for now, origin in self._origins.items() if self._removed(origin) and self._files[now][1] is None}
        whole = ""
        for path in sorted(self._files) if self._known else ():
            if path in moved.values():
                continue
            _, old, _, _ = self._files[path]
            now, _, new, hunks = self._files[moved.get(path, path)]
            found = _file_diff(self._shown(now), self._shown(path), old, new, hunks)
            whole += found if found.endswith("\n") or not found else f"{found}\n"
        return whole

    def _removed(self, path: str) -> bool:
        _, before, now, _ = self._files[path]
        return before is not None and now is None


def _before(change: Mapping[str, Any]) -> str | None:
    """Return the text of a file before a change; None if there was no file."""
    if change["type"] == "update":
        return str(change.get("old", ""))
    before: str | None = change.get("old" if change["type"] == "add" else "content")
    return before


def _after(change: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the text of a file after a change, and the hunks that show the change if the text is unknown.

    The text is None if there is no file.
    """
    if change["type"] == "update":
        return change.get("new", ""), "" if "old" in change else change.get("unified_diff", "")
    return change.get("content") if change["type"] == "add" else None, ""


def _file_diff(path: str, origin: str, old: str | None, new: str | None, hunks: str) -> str:
    if old == new and not hunks:
        return ""
    mode = "new file mode 100644\n" if old is None else "deleted file mode 100644\n" if new is None else ""
    before, after = ("/dev/null" if old is None else f"a/{origin}"), ("/dev/null" if new is None else f"b/{path}")
    head = f"diff --git a/{origin} b/{path}\n{mode}index {_blob(old)}..{_blob(new)}\n"
    lines = hunks or _hunks(old or "", new or "")
    return f"{head}--- {before}\n+++ {after}\n{lines}" if lines else head


def _blob(text: str | None) -> str:
    if text is None:
        return _NOTHING
    import hashlib  # only when there is a diff to show

    data = text.encode("utf-8", "surrogatepass")
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _hunks(old: str, new: str) -> str:
    import difflib  # only when there is a diff to show

    lines = list(difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True)))[2:]
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
