"""Find out which Codex a command starts, without starting it.

The version is in the package or manifest of its binary; fake-codex is known by its file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from codex_replay.core.wire.json_text import NotJson, loads
from codex_replay.protocol import data_tables


def version_of(command: Sequence[str]) -> str | None:
    """Return the version of the Codex that `command` starts, or None.

    Only the first two words count (the second for `node codex.js`). Our installer writes `manifest.json`,
    `package.json` what npm does.
    """
    for word in command[:2]:
        for folder in _folders_above(word):
            for name, key in (("manifest.json", "package"), ("package.json", "name")):
                facts = _object(os.path.join(folder, name))
                if str(facts.get(key, "")).startswith("@openai/codex") and isinstance(facts.get("version"), str):
                    return str(facts["version"]).split("-linux-")[0].split("-darwin-")[0]
    return None


def bundle_of(version: str) -> str:
    """Return the identity of the schema bundle of a version, `sha256:...` of its primary file; "unknown" without a bundle."""
    return data_tables.identity(version)


def is_fake(command: Sequence[str]) -> bool:
    """Return whether `command` starts fake-codex, by this or by another name (a link called `codex`)."""
    return any(os.path.basename(_program(word) or "") == "fake-codex" for word in command[:2])


def _program(word: str) -> str | None:
    """Return the file that a word of a command line names, links resolved, or None if there is none."""
    places = [""] if os.sep in word else os.environ.get("PATH", "").split(os.pathsep)
    for place in places:
        path = os.path.join(place, word)
        if os.access(path, os.X_OK if place else os.F_OK) and os.path.isfile(path):
            return os.path.realpath(path)
    return None


def _folders_above(word: str) -> Iterator[str]:
    """The folders from the program's own up; a package keeps its binary at most five below its root."""
    if (folder := _program(word)) is None:
        return
    for _ in range(5):
        folder = os.path.dirname(folder)
        yield folder


def _object(path: str) -> dict[str, object]:
    try:
        with open(path, "rb") as file:
            value = loads(file.read())
    except (OSError, NotJson):
        return {}
    return value if isinstance(value, dict) else {}
