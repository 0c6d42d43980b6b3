"""Choose the file of a recording: a new file, or an existing file to which no process records."""

from __future__ import annotations

import errno
import fcntl
import os
import stat

#: The end of the message about a file that another process writes to.
BUSY = "another process records to this file; choose another file, or put {pid} (the process id) in its name"


def claim(path: str, force: bool = False) -> str:
    """Create an empty file for a new recording, and return its path.

    The path of the file is `path`, in which `{pid}` is replaced by the process id. If the file exists, the name gets a
    number (run.2.ndjson). With `force`, an existing file is replaced, unless another process records to it. A device or a
    named pipe is used unchanged. Raises OSError.
    """
    path = path.replace("{pid}", str(os.getpid()))
    stem, suffix = os.path.splitext(path)
    number = 1
    while True:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
            return path
        except FileExistsError:
            # A path that exists and is not a file (/dev/null, a named pipe) holds no recording; for a directory, opening it
            # fails.
            if not stat.S_ISREG(os.lstat(path).st_mode) and not os.path.isfile(path):
                return path
        if force:
            _remove_idle(path)
            continue
        number += 1
        path = f"{stem}.{number}{suffix}"


def _remove_idle(path: str) -> None:
    """Remove a file that no process records to; raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    except BlockingIOError:
        raise OSError(errno.EBUSY, BUSY, path) from None
    finally:
        os.close(fd)
