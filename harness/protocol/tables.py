"""The loader of our tables beside a version's schema bundle: what is known of a Codex version, as data.

fake-codex loads this module in nearly every run, to compare what a client sent with what was recorded.
"""

from __future__ import annotations

from harness.core.jsontext import loads
from harness.protocol.schema_files import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_VERSION = "0.92.0"
_loaded: dict[tuple[str, str], dict[str, Any]] = {}


def load(name: str, version: str = DEFAULT_VERSION) -> dict[str, Any]:
    """Return the table `name` (such as "normalise") of a Codex version; shared, so not to be changed.

    A version without a table of its own has the one of 0.92.0, the version that was observed: what a run makes volatile has
    proved to be the same in later ones until someone shows otherwise. Raises `FileNotFoundError` for an unknown name.
    """
    found = _loaded.get((name, version))
    if found is None:
        found = _loaded[(name, version)] = _read(name, version)
    return found


def _read(name: str, version: str) -> dict[str, Any]:
    for folder in (version, DEFAULT_VERSION):
        try:
            with open(table(folder, f"{name}.json"), "rb") as file:
                read: dict[str, Any] = loads(file.read())
                return read
        except OSError:
            continue
    raise FileNotFoundError(f"There is no table {name!r} for Codex {version}.")
