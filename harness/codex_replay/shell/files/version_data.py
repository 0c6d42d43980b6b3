"""The reader of the packaged data of Codex versions: tables and schema files, as bytes, below ``protocol/data``.

Strategy: the floors below open no files. `codex_replay.protocol.data_tables` gets this module of the root package, in one place,
when it reads the first file. fake-codex reads tables, so this module imports nothing, and `os` only where folders are listed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The folder with one folder for each packaged version.
DATA = __file__.rpartition("/shell/")[0] + "/protocol/data"


def path_of(name: str) -> str:
    """Return the path of the file or folder `name`, such as ``0.1.2/turn.json``; it may not exist."""
    return f"{DATA}/{name}"


def schema_folder(version: str) -> str:
    """Return the path of the folder with the schema files of `version`, in a wheel an archive; it may not exist."""
    from codex_replay.shell.files.archive import packed

    return packed(path_of(f"{version}/schema"))


def read(name: str) -> bytes:
    """Return the bytes of the data file `name` (with ``/``); raises `OSError`."""
    with open(path_of(name), "rb") as file:
        return file.read()


def versions() -> list[str]:
    """Return the Codex versions whose schema files are packaged, sorted as text."""
    import os

    return sorted(name for name in os.listdir(DATA) if os.path.exists(schema_folder(name)))


def schema(version: str) -> Mapping[str, bytes]:
    """Return the schema files of `version`, by relative name; none for a version that is not packaged."""
    from codex_replay.shell.files.folder import Folder

    return Folder(schema_folder(version))
