"""Write files atomically: write to a draft next to the target, then rename the draft."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def named(draft: str, place: str) -> Iterator[None]:
    """A context manager that makes errors name the user's file instead of the draft.

    If the body raises an ``OSError`` for the path `draft` or a file in it, the error gets the path `place`.
    An error of a full disk, which names no file, also gets the path `place`.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str) and error.filename.startswith(draft):
            error.filename = place + error.filename.removeprefix(draft)
            error.filename2 = None
        elif error.filename is None and error.errno in _FULL:
            error.filename = place
        raise


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """A context manager that yields the path of a draft next to `path`.

    At the end of the body, the draft (a file or a folder) is renamed to `path`.

    If the body fails, the draft is removed and `path` stays unchanged. Missing folders above `path` are created. If two
    processes write the same folder at the same time, the folder of the first process is kept. The draft of the second
    process is dropped, because both have the same content. Raises ``OSError`` if the draft cannot be written or renamed.
    """
    place = os.fspath(path)
    above, name = os.path.split(os.path.abspath(place))
    os.makedirs(above, exist_ok=True)
    draft = os.path.join(above, f".{name}.{os.getpid()}.draft")
    _remove(draft)
    try:
        with named(draft, place):
            yield draft
            if not (os.path.isdir(draft) and os.path.isdir(place)):
                os.replace(draft, place)
    finally:
        _remove(draft)


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path` in one step, so that a reader sees the old file or the new file, and never an incomplete file.

    If `path` is not a regular file (a pipe, a device such as /dev/stdout), `data` is written to it directly.
    """
    special = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    with contextlib.nullcontext(path) if special else replacing(path) as place, open(place, "wb") as file:
        file.write(data)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
