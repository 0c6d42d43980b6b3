"""The vendored schema files of a Codex version, as bytes: what `codex app-server generate-json-schema` writes.

Strategy: one folder a version under ``data/``, holding exactly the generated files and nothing else, so that it can be
compared with a fresh generation file by file. It is the one reader of vendored schema data in the pure layers. fake-codex
loads this module in nearly every run, for the path of a table: so ``os`` is imported where folders are walked.
"""

from __future__ import annotations

import harness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: The file that holds every definition at once (spec/schema-0.92-tools.md, "How the schema was obtained").
PRIMARY = "codex_app_server_protocol.schemas.json"

_DATA = f"{harness.__path__[0]}/protocol/data"


def versions() -> list[str]:
    """Return the Codex versions whose schema files are vendored, sorted as text."""
    import os

    return sorted(name for name in os.listdir(_DATA) if os.path.isdir(folder(name)))


def folder(version: str) -> str:
    """Return the path of the folder that holds the vendored schema files of `version` (it may not exist)."""
    return f"{_DATA}/{version}/schema"


def table(version: str, name: str) -> str:
    """Return the path of a table of ours beside the schema folder of `version`, such as ``schema.sha256``."""
    return f"{_DATA}/{version}/{name}"


def identity(version: str) -> str:
    """Return the identity of the schema bundle of `version`, ``sha256:...`` of its primary file; "unknown" if we have none."""
    try:
        with open(table(version, "schema.sha256"), encoding="ascii") as manifest:
            for line in manifest:
                digest, _, name = line.strip().partition("  ")
                if name == PRIMARY:
                    return f"sha256:{digest}"
    except OSError:
        pass
    return "unknown"


def names(root: str) -> list[str]:
    """Return the relative names (with ``/``) of all files under the folder `root`, sorted as text."""
    import os

    found: list[str] = []
    for where, _, files in os.walk(root):
        found += [os.path.relpath(os.path.join(where, name), root).replace(os.sep, "/") for name in files]
    return sorted(found)


def read(root: str, name: str) -> bytes:
    """Return the bytes of the file `name` (relative, with ``/``) under the folder `root`; raises ``OSError``."""
    with open(f"{root}/{name}", "rb") as file:
        return file.read()


def schema_files(version: str = "0.92.0") -> Iterator[tuple[str, bytes]]:
    """Yield ``(relative name, bytes)`` of each vendored schema file of `version`, one file in memory at a time.

    Names use ``/``, for example ``v2/ThreadStartParams.json``. Raises ``FileNotFoundError`` when that version is not
    vendored.
    """
    import os

    root = folder(version)
    if not os.path.isdir(root):
        raise FileNotFoundError(f"No schema files of Codex {version} are vendored; there are: {', '.join(versions())}.")
    for name in names(root):
        yield name, read(root, name)
