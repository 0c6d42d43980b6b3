"""The spool: a folder in which the processes of a run store traces until the report is written.

Only the current user can read the spool folder. The folder has one file for each process, and a file has two lines for each
trace. If a case has two traces, the later one counts. The spool folder is locked during the run, so that the next run can
recognise and remove the folder of a killed run.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_replay.report.traces import frames_text

if TYPE_CHECKING:
    from codex_replay.plugin.reporting.trace import CollectedTrace

#: The prefix of a spool's name. Its lock is held while its run lives, in any container: a process number would be ambiguous.
_PREFIX, _LOCK = "codex-replay-traces-", "lock"


def key_of(nodeid: str) -> str:
    """Return the name of a case's trace in the spool. The name is a hash, because the node id of a case may contain a secret."""
    return hashlib.sha256(nodeid.encode("utf-8", "surrogatepass")).hexdigest()[:24]


class Spool:
    """The folder in which the processes of a run store traces until the report is written.

    Each process writes `folder`/<pid>.ndjson.

    A trace has two lines: one line with its description, and one line with its frames. The report gets the frames of a
    trace without decoding them.
    """

    def __init__(self, folder: Path, owner: int = 0, lock: int = -1) -> None:
        self.folder = folder
        self._owner, self._lock = owner, lock

    @classmethod
    def make(cls) -> Spool:
        """Create a spool folder that only this user can read, and remove the spool folders of killed runs."""
        _sweep()
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        return cls(folder, os.getpid(), _locked(folder))

    def remove(self) -> None:
        """Remove the spool folder, if this process created it."""
        if self._owner == os.getpid():
            shutil.rmtree(self.folder, ignore_errors=True)
            if self._lock >= 0:
                os.close(self._lock)
                self._lock = -1

    def put(self, nodeid: str, trace: CollectedTrace) -> None:
        """Append a trace to the file of this process, in one write; raises `OSError` if the file cannot be written."""
        head = {"key": key_of(nodeid), **{name: value for name, value in trace.items() if name != "frames"}}
        lines = b"%s\n%s\n" % (json.dumps(head, separators=(",", ":")).encode(), frames_text(trace["frames"]))
        with open(self.folder / f"{os.getpid()}.ndjson", "ab") as file:
            file.write(lines)

    def index(self) -> dict[str, tuple[Path, int]]:
        """Return the place of each trace in the spool: the file, and the offset of the trace's two lines.

        If a case has two traces, the later trace counts.
        """
        found: dict[str, tuple[Path, int]] = {}
        for path in sorted(self.folder.glob("*.ndjson"), key=lambda path: path.stat().st_mtime_ns):
            with open(path, "rb") as file:
                at = 0
                for head in file:
                    frames = file.readline()
                    if frames.endswith(b"\n"):  # a process that was killed may have left half a trace
                        found[head[8:32].decode("ascii", "replace")] = (path, at)
                    at += len(head) + len(frames)
        return found

    @staticmethod
    def read(place: tuple[Path, int]) -> tuple[dict[str, Any], bytes]:
        """Return the description of the trace at a place from `index`, and the text of its frames."""
        with open(place[0], "rb") as file:
            file.seek(place[1])
            head: dict[str, Any] = json.loads(file.readline())
            return head, file.readline()[:-1]


def _locked(folder: Path) -> int:
    """Lock a new spool folder and return the descriptor of the locked file, or -1 on a file system without locks."""
    draft = folder / f"{_LOCK}.new"
    lock = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft.rename(folder / _LOCK)  # once it is held: whoever sees it unlocked may take the folder away
    except OSError:
        os.close(lock)
        return -1
    return lock


def _sweep() -> None:
    """Remove the spool folders of this user that no process has locked."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # no lock in it, or it is held, or another run takes it away
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
