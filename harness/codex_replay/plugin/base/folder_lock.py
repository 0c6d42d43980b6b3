"""Lock the report folder during a run, so that two simultaneous runs never overwrite each other's report.

The operating system unlocks the file when the process ends, so a killed run does not leave a locked folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from itertools import count
from pathlib import Path

#: The file that is locked. It is there only while a run is at work, or after one that was killed.
LOCK = ".run.lock"


class FolderLock:
    """A folder that this process keeps locked until it calls `release`."""

    def __init__(self, folder: Path, lock: int, made: bool) -> None:
        """`lock` is the descriptor of the locked file, or -1 if the file system has no locks.

        `made` is True if the run created the folder.
        """
        self.folder = folder
        self._lock, self._made = lock, made

    def release(self) -> None:
        """Unlock the folder; remove the folder if the run created it and left it empty."""
        if self._lock >= 0:
            with contextlib.suppress(OSError):
                (self.folder / LOCK).unlink()  # while it is locked: no other process's can exist
            os.close(self._lock)
            self._lock = -1
        if self._made:
            with contextlib.suppress(OSError):
                self.folder.rmdir()


def lock_folder(folder: Path) -> FolderLock | None:
    """Create a folder if necessary and lock it; return None if another run has locked the folder.

    Raises `OSError` if the process cannot write to the folder.
    """
    made = not folder.exists()
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            if folder.is_dir():
                raise
            continue  # its run has ended just now, and has taken it away
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        except OSError:  # a file system without locks: act as the only process
            os.close(lock)
            with contextlib.suppress(OSError):
                (folder / LOCK).unlink()
            return FolderLock(folder, -1, made)
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(lock), os.stat(folder / LOCK)):
                return FolderLock(folder, lock, made)
        os.close(lock)  # it was the lock of a run that ended between our two steps


def lock_free_folder(folder: Path) -> FolderLock:
    """Lock the folder NAME.

    If another run has locked it, lock the first free folder of NAME-2, NAME-3, ...; raises `OSError` as `lock_folder` does.
    """
    for number in count(2):
        held = lock_folder(folder if number == 2 else folder.with_name(f"{folder.name}-{number - 1}"))
        if held is not None:
            return held
    raise AssertionError  # there is always one number more
