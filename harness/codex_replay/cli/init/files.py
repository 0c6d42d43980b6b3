"""Plan and write the files that `codex-replay init` makes.

`init` overwrites no file and no table: it appends tables to existing files, and creates new files.

A table is appended to pyproject.toml as text, so the comments and the layout of pyproject.toml do not change. Before `init`
writes a changed file, it parses the new text, and checks that the text contains only the old content and the new table.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from codex_replay.cli.io.console import Unable
from codex_replay.plugin.base.configuration import FILES, TABLE, Configuration
from codex_replay.shell.files.atomic import write_whole

Action = Literal["append", "create", "keep"]


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One planned file: the text to append or create, or the reason why the existing file is kept."""

    path: Path
    action: Action
    text: str
    why: str = ""


def configuration_file(folder: Path, role: str, text: str, own: Configuration) -> PlannedFile:
    """Return the change of the configuration file (pyproject.toml or codex-replay.toml) that adds the table of a proxy or client.

    `own` is the configuration that the project already has.

    Raises `Unable` if the existing file cannot be read, or is not UTF-8.
    """
    if own.path is not None and own.path.parent == folder:
        if own.table.get(role):
            return PlannedFile(own.path, "keep", text, f"it has [{TABLE}] {role} already")
        path = own.path
    else:
        path = folder / next((name for name in FILES if (folder / name).is_file()), FILES[-1])
    if not path.exists():
        return PlannedFile(path, "create", text)
    old = _read(path)
    if _parsed(_joined(old, text)) == _merged(_parsed(old), _parsed(text)):
        return PlannedFile(path, "append", text)
    return PlannedFile(path, "keep", text, "the syntax of its tables does not allow init to append a table")


def new_file(path: Path, text: str) -> PlannedFile:
    """Return the plan for a new file of `init`: create the file, or keep the existing file."""
    if not os.path.lexists(path):
        return PlannedFile(path, "create", text)
    same = path.is_file() and path.read_bytes() == text.encode()
    return PlannedFile(path, "keep", "" if same else text, "it has this content already" if same else "it exists")


def write(file: PlannedFile) -> None:
    """Create the file or append to it; raises `OSError`, or `Unable` if another program has changed the file in the meantime."""
    if file.action == "append":
        write_whole(file.path, _joined(_read(file.path), file.text).encode())
    elif file.action == "create":
        file.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(file.path, "x", encoding="utf-8") as made:
                made.write(file.text)
        except FileExistsError:
            raise Unable(f"Another program has just created {file.path}; init did not change it.") from None


def _read(path: Path) -> str:
    """Return the text with its line endings unchanged."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise Unable(f"{path} is not encoded as UTF-8, so it is not TOML; nothing was written.") from None


def _joined(old: str, new: str) -> str:
    end = "\r\n" if "\r\n" in old else "\n"
    gap = "" if not old else end if old.endswith("\n") else end * 2
    return old + gap + new.replace("\n", end)


def _parsed(text: str) -> dict[str, object] | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _merged(old: object, new: object) -> object:
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
    return new
