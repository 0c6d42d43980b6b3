"""Read the data of a Codex version: the tables of codex-replay, and the JSON schema files that this Codex generates.

Each Codex version has a folder. The folder ``schema/`` has exactly the files that ``codex app-server generate-json-schema``
writes, so that new files can be compared with them. The tables of codex-replay are next to the folder ``schema/``. The
module opens no files itself. `codex_replay.shell.files.version_data`, which the root package provides when the first file
is needed, reads the files.

The function `load` returns a table of one version. If the version has no such table, the function `choose` returns the
table for all versions, or None, and a sentence for the user. The table of another version is used only if the user names
that version.
"""

from __future__ import annotations

import codex_replay
from codex_replay.protocol.versions import DEFAULT, is_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    class Source(Protocol):
        """The interface of a reader of data files; file names are relative to the data folder."""

        def read(self, name: str) -> bytes:
            """Return the bytes of a file; raises `OSError` if the file cannot be read."""

        def versions(self) -> list[str]:
            """Return the versions whose schema files exist."""

        def schema(self, version: str, experimental: bool = False) -> Mapping[str, bytes]:
            """Return the schema files of a version by relative name; empty for an unknown version."""


#: The schema file with all definitions (SCHEMA-02).
PRIMARY = "codex_app_server_protocol.schemas.json"

_loaded: dict[str, Any] = {}


class MissingTable(LookupError):
    """A version lacks some data; the message is a sentence that names the version and the data."""


def _source() -> Source:
    source: Source = codex_replay._data_reader()  # type: ignore[assignment]
    return source


def read(name: str, version: str = DEFAULT) -> bytes:
    """Return the bytes of the data file `name`, such as ``turn.json``, of `version`.

    Raises `MissingTable` if there is no such file.
    """
    try:
        return _source().read(f"{version}/{name}")
    except OSError:
        raise MissingTable(f"There is no {name} for Codex {version}.") from None


def load(name: str, version: str = DEFAULT) -> Any:
    """Return the table `name` (such as "normalise") of `version`; do not change it, because all callers share it.

    Raises `MissingTable` if the version has no such table.
    """
    key = f"{version}/{name}"
    if key not in _loaded:
        from codex_replay.core.wire.json_text import loads

        _loaded[key] = loads(read(f"{name}.json", version))
    return _loaded[key]


#: The folder of the tables for all versions.
ANY = "any"
#: What a replay or a comparison does without a table.
_WITHOUT = {
    "normalise": "times, durations and paths (except cwd) count as differences, and races are not put into one order",
    "causality": "each server frame waits for every client frame recorded before it",
    "methods": "a request that is not recorded is a mismatch, even where the real server refuses it",
}


def choose(name: str, version: str) -> tuple[Any, str]:
    """Return the table `name` of `version`, and an empty text.

    If the version lacks the table, return the table for all versions (None if there is none) and a sentence to print.

    `version` may come from the header of a cassette or from a program under test. The sentence names the missing table and
    the consequence.
    """
    if is_version(version):
        try:
            return load(name, version), ""
        except MissingTable:
            pass
    try:
        table = load(name, ANY)
    except MissingTable:
        table = None
    return table, without((name,), version)


def without(names: Sequence[str], version: str, effect: str = "") -> str:
    """Return a sentence about the tables in `names` that `version` lacks; return "" if it has all of them.

    `effect` is the consequence of the missing tables for the user (default: the consequence for a replay or a comparison).
    The sentence also names the command that makes the missing tables.
    """
    lacking = [name for name in names if not has(name, version)]
    if not lacking:
        return ""
    effects = effect or "; ".join(_WITHOUT[name] for name in lacking)
    if not is_version(version):
        return f"{no_version(version)}, so no version's tables apply: {effects}."
    *most, last = lacking
    listed = f"{', '.join(most)} or {last}" if most else last
    return f"There is no {listed} table for Codex {version}{_maker(lacking[0], version)}: {effects}. {_packaged(lacking[0])}"


def has(name: str, version: str) -> bool:
    """Return True if `version` has the table `name`."""
    if not is_version(version):
        return False
    try:
        read(f"{name}.json", version)
    except MissingTable:
        return False
    return True


def unavailable(name: str, version: str) -> str:
    """Return an error message if a version that the user named lacks the table `name`; "" if it has the table."""
    if has(name, version):
        return ""
    if not is_version(version):
        return f"{_quoted(version)} is not a Codex version. {_packaged(name)}"
    return f"There is no {name} table for Codex {version}{_maker(name, version)}. {_packaged(name)}"


#: The tables that `codex-replay codex add` makes of any version.
LEARNABLE = ("normalise", "causality", "methods", "config-keys")


def _maker(name: str, version: str) -> str:
    """Return the advice for a missing table, as the end of an error message."""
    made = name in LEARNABLE and version not in versions()
    return f" (`codex-replay codex add {version}` makes it)" if made else ", and no command creates one"


def _packaged(name: str) -> str:
    return f"Available for: {', '.join(each for each in versions() if has(name, each))}."


def named(version: str) -> str:
    """Return "Codex 1.2.3" for a version, and a description for any other text."""
    return f"Codex {version}" if is_version(version) else "no known version"


def no_version(text: str) -> str:
    """Return the beginning of an error message about a text that should be a Codex version but is not."""
    return f"The header names no Codex version ({_quoted(text)})"


def _quoted(text: str) -> str:
    from codex_replay.core.text.escape import escape
    from codex_replay.core.text.truncate import truncate

    return escape(truncate(repr(text), 80))


def versions() -> list[str]:
    """Return the Codex versions that have schema files, packaged or added by the user, sorted as text."""
    return _source().versions()


def schema(version: str = DEFAULT, experimental: bool = False) -> Mapping[str, bytes]:
    """Return the plain or the `experimental` schema files of `version` by relative name, such as ``v2/ThreadStartParams.json``.

    Raises `MissingTable` if codex-replay has no schema files of `version`.
    """
    files = _source().schema(version, experimental)
    if PRIMARY not in files:
        raise MissingTable(f"No schema files of Codex {version} are packaged. Available versions: {', '.join(versions())}.")
    return files


def identity(version: str) -> str:
    """Return the identity of the schema bundle of `version`: ``sha256:...`` of its primary file, or "unknown" if there is no
    bundle.
    """
    try:
        manifest = read("schema.sha256", version).decode("ascii")
    except MissingTable:
        return "unknown"
    digests = (line.partition("  ") for line in manifest.splitlines())
    return next((f"sha256:{digest}" for digest, _, name in digests if name == PRIMARY), "unknown")
