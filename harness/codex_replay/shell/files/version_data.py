"""Read the data of Codex versions as bytes: tables and schema files.

The packaged data are below ``protocol/data``. The command `codex-replay codex add` makes data in the same form below the
user's data folder (`added_folder`). Each version has one folder. A packaged version is never replaced. The modules of
`core` and `protocol` open no files: `codex_replay.protocol.data_tables` reads files through this module, which the root
package passes to it. This module imports nothing when it is loaded, because fake-codex loads it at start-up. The module
`os`, too, is imported only for a file that is not packaged, and for a list of folders.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The folder with one folder for each packaged version.
DATA = __file__.rpartition("/shell/")[0] + "/protocol/data"
#: The file that `codex add` writes last; a folder without it is not a version.
LEARNT = "learnt.json"


def added_folder() -> str:
    """Return the folder of the versions that the user has added.

    The folder is ``$CODEX_REPLAY_DATA/versions``, or ``codex-replay/versions`` under $XDG_DATA_HOME or ~/.local/share.
    """
    import os

    chosen = os.environ.get("CODEX_REPLAY_DATA")
    if chosen:
        return f"{os.path.abspath(chosen)}/versions"
    base = os.environ.get("XDG_DATA_HOME", "")
    return f"{base if os.path.isabs(base) else os.path.expanduser('~/.local/share')}/codex-replay/versions"


def path_of(name: str) -> str:
    """Return the path of the packaged file or folder `name`, such as ``0.1.2/turn.json``. The file or folder need not exist."""
    return f"{DATA}/{name}"


def schema_folder(version: str, experimental: bool = False) -> str:
    """Return the path of the folder (in a wheel: the archive) with the schema files of `version`.

    The folder or archive need not exist.
    """
    return folder(f"{version}/schema{'-experimental' if experimental else ''}")


def folder(name: str) -> str:
    """Return the path of the data folder `name` (in a wheel: the archive), such as ``0.1.2/cassettes``.

    The folder or archive need not exist.
    """
    import os

    from codex_replay.shell.files.archive import packed

    place = packed(path_of(name))
    return place if os.path.exists(place) else f"{added_folder()}/{name}"


def read(name: str) -> bytes:
    """Return the bytes of the data file `name`, a relative path with ``/``. Raises `OSError` if the file cannot be read."""
    try:
        with open(path_of(name), "rb") as file:
            return file.read()
    except FileNotFoundError:
        with open(f"{added_folder()}/{name}", "rb") as file:
            return file.read()


def packaged() -> list[str]:
    """Return the Codex versions whose schema files are packaged, sorted as text."""
    import os

    from codex_replay.shell.files.archive import packed

    return sorted(name for name in os.listdir(DATA) if os.path.exists(packed(path_of(f"{name}/schema"))))


def added() -> list[str]:
    """Return the Codex versions that the user has added, sorted as text."""
    import os

    place = added_folder()
    try:
        names = os.listdir(place)
    except OSError:
        return []
    return sorted(name for name in names if not name.startswith(".") and os.path.isfile(f"{place}/{name}/{LEARNT}"))


def versions() -> list[str]:
    """Return the Codex versions whose schema files exist, packaged or added, sorted as text."""
    return sorted({*packaged(), *added()})


def schema(version: str, experimental: bool = False) -> Mapping[str, bytes]:
    """Return the schema files of `version` by relative name. For an unknown version, the result is empty."""
    from codex_replay.shell.files.folder import Folder

    return Folder(schema_folder(version, experimental))
