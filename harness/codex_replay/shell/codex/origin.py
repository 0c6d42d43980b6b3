"""Find out which Codex version a command starts, without running the command.

The version is read from the package, or from the manifest of the installed binary. fake-codex is recognised by its program
file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from codex_replay.core.wire.json_text import NotJson, loads
from codex_replay.protocol import data_tables


def version_of(command: Sequence[str]) -> str | None:
    """Return the version of the Codex that `command` starts, or None.

    Only the first two words of the command and the first two words after `--` are examined: `codex`, `node codex.js`,
    `codex-replay connect -- codex`. The version is in `manifest.json`, which `codex install` writes, or in `package.json`, which
    npm writes.
    """
    for word in _programs(command):
        for folder in _folders_above(word):
            for name, key in (("manifest.json", "package"), ("package.json", "name")):
                facts = _object(os.path.join(folder, name))
                if str(facts.get(key, "")).startswith("@openai/codex") and isinstance(facts.get("version"), str):
                    return str(facts["version"]).split("-linux-")[0].split("-darwin-")[0]
    return None


def bundle_of(version: str) -> str:
    """Return the identity of a version's schema bundle: `sha256:...` of its primary file, or "unknown" without a bundle."""
    return data_tables.identity(version)


def is_fake(command: Sequence[str]) -> bool:
    """Return True if `command` starts fake-codex, under its own or another name (such as a link called `codex`)."""
    return any(os.path.basename(_program(word) or "") == "fake-codex" for word in _programs(command))


def _programs(command: Sequence[str]) -> Sequence[str]:
    """Return the words of a command line that may name the Codex program."""
    inner = command.index("--") + 1 if "--" in command else len(command)
    return [*command[:2], *command[inner : inner + 2]]


def _program(word: str) -> str | None:
    """Return the file that a word of a command line names, with links resolved. Return None if the file does not exist."""
    places = [""] if os.sep in word else os.environ.get("PATH", "").split(os.pathsep)
    for place in places:
        path = os.path.join(place, word)
        if os.access(path, os.X_OK if place else os.F_OK) and os.path.isfile(path):
            return os.path.realpath(path)
    return None


def _folders_above(word: str) -> Iterator[str]:
    """Yield the folder of a program and the folders above it.

    At most five levels are yielded, because the binary is at most five levels below the root of its package.
    """
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
