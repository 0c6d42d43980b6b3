"""The loader of our tables beside a version's schema bundle: what is known of a Codex version, as data."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from harness.protocol import schema_files

DEFAULT_VERSION = "0.92.0"


@cache
def load(name: str, version: str = DEFAULT_VERSION) -> dict[str, Any]:
    """Return the table `name` (such as "normalise") of a Codex version; shared, so not to be changed.

    A version without a table of its own has the one of 0.92.0, the version that was observed: what a run makes volatile has
    proved to be the same in later ones until someone shows otherwise. Raises `FileNotFoundError` for an unknown name.
    """
    for folder in (version, DEFAULT_VERSION):
        try:
            with open(schema_files.table(folder, f"{name}.json"), "rb") as file:
                table: dict[str, Any] = json.load(file)
                return table
        except OSError:
            continue
    raise FileNotFoundError(f"There is no table {name!r} for Codex {version}.")
