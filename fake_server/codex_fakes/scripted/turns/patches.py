"""Handle patches of files: report a patch, request an approval, and treat the patch as applied.

The fake reads and writes no file. The fake only checks whether directories exist. After an approval,
Codex versions after 0.92 write only in existing directories of the patch's files, and create no directory.
"""

from __future__ import annotations

from codex_fakes.scripted.turns.calls import Calls, streams
from codex_replay.protocol.turn.diff import changes_of, shown, shown_v2
from codex_replay.protocol.turn.patch_text import BadPatch, summary_lines
from codex_replay.protocol.turn.tools import UNCONFINED, arguments_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from codex_fakes.scripted.turns.calls import Output


def _denial(patch: str) -> dict[str, Any]:
    """Return the output of apply_patch in a sandbox that forbids writing.

    apply_patch then fails at the first file of the patch. If the patch deletes this file, the failure is
    final: there is no second try without the sandbox.
    """
    lines = patch.splitlines()
    kind, _, path = next((line for line in lines if line.startswith("*** ") and " File: " in line), "").partition(" File: ")
    path = next((line[13:] for line in lines if line.startswith("*** Move to: ")), path)
    deletes = kind == "*** Delete"
    return {"stderr": f"Failed to {'delete' if deletes else 'write'} file {path.strip()}\n", "final": deletes}


def _creatable(changes: dict[str, Any], cwd: str) -> bool:
    """Return True if each new file of a patch is in or below an existing directory that contains a file of the patch.

    `cwd` counts as an existing directory.
    """
    import os

    folders = {path.rpartition("/")[0] for path in changes}
    there = [f"{folder}/" for folder in folders if folder == cwd or os.path.isdir(folder)]
    new = [path for path, change in changes.items() if change["type"] == "add"]
    return all(any(path.startswith(folder) for folder in there) for path in new)


class Patches(Calls):
    """Calls of apply_patch."""

    def _patch(self, call: dict[str, Any], result: dict[str, Any]) -> Output:
        patch = call["input"] if call["call"] == "custom" else arguments_of(call, ("input",), self.forms())["input"]
        if "error" in result:
            return str(result["error"])
        text = yield from self._change(call, patch, self.turn.settings.cwd, result)
        return text

    def _change(self, call: dict[str, Any], patch: str, cwd: str, result: dict[str, Any]) -> Output:
        """Apply a patch that a call contains. `cwd` is the working directory of the call."""
        thread, turn, settings = self.thread, self.turn, self.turn.settings
        try:
            changes = changes_of(patch, cwd, result)
        except BadPatch as error:
            return turn.sentence("patch-unverified", why=str(error))
        if not changes:
            return turn.sentence("patch-empty")
        inside = self._writable(changes)
        asks = settings.policy == "untrusted" or (settings.policy == "on-request" and not inside)
        if settings.policy == "never" and not inside:
            return turn.sentence("patch-outside")
        values = {
            "call": call.get("call_id"),
            "changes": shown(changes),
            "changesV2": shown_v2(changes),
            "autoApproved": not asks,
            "reason": None,
        }
        thread.emit("patch-begin", values)
        self.diff.begin(changes)
        key = tuple(sorted(changes))
        if not inside and not thread.clock and "denied" not in result:
            result = {**result, "denied": _denial(patch)}  # the sandbox lets nothing be written there
        if thread.clock and not inside and not _creatable(changes, cwd):
            result = {"success": False, **result}
        if result.get("approval", asks) and not all(("file", path) in thread.approved for path in key):
            refused = yield from self._approve_patch(values, key)
            if refused:
                return refused
            if "denied" in result and not inside:  # it is tried within the sandbox first
                if result["denied"].get("final"):
                    return self._patched(patch, changes, values, {**result["denied"], "success": False})
                self.outputs("patch-output", values, result["denied"])
        elif "denied" in result and not inside:
            if result["denied"].get("final"):
                return self._patched(patch, changes, values, {**result["denied"], "success": False})
            self.outputs("patch-output", values, result["denied"])
            refused = yield from self._approve_patch({**values, "reason": turn.sentence("retry-reason")}, key)
            if refused:
                return refused
        return self._patched(patch, changes, values, result)

    def _patched(self, patch: str, changes: dict[str, Any], values: dict[str, Any], result: dict[str, Any]) -> str:
        thread, turn = self.thread, self.turn
        success = result.get("success", True)
        if success and "stdout" not in result:
            result = {**result, "stdout": turn.sentence("patch-success") + summary_lines(patch)}
        self.outputs("patch-output", values, result)
        (_, stdout), (_, stderr) = streams(result)
        ended = {"stdout": stdout, "stderr": stderr, "success": success, "status": "completed" if success else "failed"}
        thread.emit("patch-end", {**values, **ended})
        shown = self.diff.text() if thread.clock else ""
        if success:
            self.diff.apply(changes)
        else:
            self.diff.fail()
        self._diff(shown)
        code = result.get("exit_code", 0 if success else 1)
        return self.what_ran(code, stdout + stderr, sentence="patch-output" if thread.clock else "exec-output")

    def _diff(self, shown: str = "") -> None:
        """Send the diff of the turn. Send an empty diff only if the client has seen another diff (`shown`)."""
        if (diff := self.diff.text()) or shown:
            self.thread.emit("turn-diff", {"diff": diff})

    def _approve_patch(self, values: dict[str, Any], key: tuple[str, ...]) -> Generator[Any, None, str]:
        self.thread.emit("patch-waiting")
        decision, _ = yield from self.decide("patch-approval", values)
        self.thread.emit("waiting-over")
        sentence = "patch-undecided" if decision == "unknown" else "patch-rejected"
        decision = "deny" if decision == "unknown" else decision
        if decision in ("deny", "abort"):
            text = self.turn.sentence(sentence)
            if decision == "deny" or not self.thread.clock:  # a later version does not end an item that is cancelled
                self.thread.emit("patch-declined", values)
            ended = {"stdout": "", "stderr": text, "success": False, "status": "failed"}
            self.thread.emit("patch-refused", {**values, **ended})
            if not self.thread.clock:  # a later version repeats no diff here
                self._diff()
            return self.refused(decision, text)
        if decision == "approve-session":
            self.thread.approved.update(("file", path) for path in key)
        return ""

    def _writable(self, changes: dict[str, Any]) -> bool:
        """Return True if the sandbox allows writing all changed files. The parts `..` of a path count, as in Codex."""
        import os

        sandbox = self.turn.settings.sandbox
        if sandbox["type"] in UNCONFINED:
            return True
        if sandbox["type"] != "workspaceWrite":
            return False
        roots = [self.turn.settings.cwd, *sandbox["writableRoots"], *(() if sandbox["excludeSlashTmp"] else ("/tmp",))]
        paths = [*changes, *(c["move_path"] for c in changes.values() if c.get("move_path"))]
        return all(any(path.startswith(root.rstrip("/") + "/") for root in roots) for path in map(os.path.normpath, paths))
