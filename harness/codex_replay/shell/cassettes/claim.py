"""Which file a recording gets: one that is new, or that nobody records to."""

from __future__ import annotations

import errno
import fcntl
import os
import stat

#: What a sentence says of a file that somebody else writes to.
BUSY = "another process records to this file; choose another one, or put {pid} in its name, which stands for the process id"


def claim(path: str, force: bool = False) -> str:
    """Return the file to record to, created empty: `path` with `{pid}` filled in, or numbered (run.2.ndjson) if it is there.

    With `force` a file that is there is replaced, unless another process records to it. A device or a named pipe is taken as it
    is. Raises OSError.
    """
    path = path.replace("{pid}", str(os.getpid()))
    stem, suffix = os.path.splitext(path)
    number = 1
    while True:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
            return path
        except FileExistsError:
            # What is there and is no file (/dev/null, a named pipe) holds no recording; a directory will say so itself.
            if not stat.S_ISREG(os.lstat(path).st_mode) and not os.path.isfile(path):
                return path
        if force:
            _remove_idle(path)
            continue
        number += 1
        path = f"{stem}.{number}{suffix}"


def _remove_idle(path: str) -> None:
    """Remove a file to which nobody records; raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    except BlockingIOError:
        raise OSError(errno.EBUSY, BUSY, path) from None
    finally:
        os.close(fd)
