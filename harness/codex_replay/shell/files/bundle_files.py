"""Read schema bundles from files: a generated directory (in a wheel: an archive), or only a primary file."""

from __future__ import annotations

import os

from codex_replay.protocol.data_tables import PRIMARY
from codex_replay.protocol.schema.bundle import Bundle, BundleError, alone
from codex_replay.shell.files.archive import SUFFIX
from codex_replay.shell.files.folder import Folder


def load_file(path: str | os.PathLike[str], version: str | None = None) -> Bundle:
    """Return the schema bundle at `path`.

    `path` is a generated directory, an archive of such a directory, or a primary file (a single file with all definitions).
    If a primary file is in a generated directory, the whole directory is read. `version` defaults to the name of the
    directory or file. Raises `BundleError` if `path` cannot be read or has no bundle.
    """
    path = os.fspath(path)
    whole = os.path.isdir(path) or path.endswith(SUFFIX)
    root = path if whole else os.path.dirname(path) or "."
    if whole or (os.path.basename(path) == PRIMARY and os.path.exists(os.path.join(root, "ClientRequest.json"))):
        bundle = Bundle(version or os.path.basename(os.path.abspath(root)), Folder(root))
    else:
        try:
            with open(path, "rb") as file:
                bundle = alone(version or os.path.basename(path), file.read())
        except OSError as error:
            raise BundleError(f"The bundle {path} cannot be read: {error.strerror}.") from None
    if "ClientRequest" not in bundle.primary["definitions"]:
        raise BundleError(f"{path} is not a bundle of the app-server protocol: it defines no ClientRequest.")
    return bundle
