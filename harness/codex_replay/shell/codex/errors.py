"""The errors of an install of the real Codex. Each error message is one sentence.

CodexInstallError            the install cannot succeed until the user acts
  FlakyDownload              the same attempt may succeed if it is repeated
"""

from __future__ import annotations

import errno
from pathlib import Path

_FULL = {errno.ENOSPC, errno.EDQUOT}
_UNWRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ENOENT, errno.ENAMETOOLONG}


class CodexInstallError(Exception):
    """The Codex binary is missing and cannot be installed.

    The message of the error names what happened, where, and what the user can do.
    """


class FlakyDownload(CodexInstallError):
    """The network or the server failed in a way that is often temporary, so a retry may succeed."""


def disk_full(folder: Path) -> CodexInstallError:
    """Return the error for a full disk or quota under `folder`."""
    return CodexInstallError(
        f"The disk of {folder} is full. Free about 500 MB, or set CODEX_REPLAY_CACHE to a folder on another disk,"
        " and install again; nothing was installed."
    )


def from_os_error(error: OSError, folder: Path) -> CodexInstallError:
    """Return the error for an `OSError` of a file in the cache folder `folder`."""
    if error.errno in _FULL:
        return disk_full(folder)
    if error.errno in _UNWRITABLE:
        return CodexInstallError(
            f"The cache folder {folder} cannot be written ({error.strerror or error}): make it writable, or set "
            f"CODEX_REPLAY_CACHE to a writable folder."
        )
    return CodexInstallError(
        f"The install failed in the cache folder {folder} ({error.strerror or error}); nothing was installed."
    )
