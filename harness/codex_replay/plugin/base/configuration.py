"""Read the configuration of a project: the table `[tool.codex-replay]` in pyproject.toml, otherwise in codex-replay.toml.

The table `[tool.codex-replay]` has the options of a run. Each table `[tool.codex-replay.ROLE.NAME]` configures a program
under test; ROLE is proxy, editor-client or lite-client. The tables in pyproject.toml and codex-replay.toml have the same
form. Every error is a `BadConfiguration` that names the file, the table and the key.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codex_replay.plugin.base.subjects import BadSubject

FILES = ("pyproject.toml", "codex-replay.toml")
TABLE = "tool.codex-replay"
_MOST = 1 << 20  # bytes
#: role -> the suite that judges its subjects.
SUITE_OF = {"proxy": "proxy", "editor-client": "editor_client", "lite-client": "lite_client"}

#: What a value must be: the end of the sentence "KEY must be ...", and whether a value is.
Kind = tuple[str, Callable[[Any], bool]]
TEXT: Kind = ("a string", lambda value: isinstance(value, str))
TEXTS: Kind = ("a list of strings", lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value))
TEXTS_BY_NAME: Kind = (
    "a table of strings",
    lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
)
SECONDS: Kind = (
    "a number of seconds",
    lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value > 0,
)
COUNT: Kind = (
    "a whole number, 1 or more",
    lambda value: isinstance(value, int) and not isinstance(value, bool) and value > 0,
)
#: The keys that each subject may have.
SUBJECT_KEYS: dict[str, Kind] = {"command": TEXT, "baseline": TEXT}


class BadConfiguration(BadSubject):
    """A configuration file has an invalid table, key or value; the text of the exception is a sentence."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The `[tool.codex-replay]` table of a project; `path` is the file with the table, or None if no file has it."""

    path: Path | None = None
    table: Mapping[str, Any] = field(default_factory=dict)

    def subjects(self, role: str) -> dict[str, dict[str, Any]]:
        """Return the programs under test of a role, by name.

        Raises `BadConfiguration` if a program is not configured as a table.
        """
        found = self.table.get(role)
        if not isinstance(found, dict):
            return {}
        for name, row in found.items():
            if not isinstance(row, dict):
                raise BadConfiguration(
                    f"{self.path}: [{TABLE}.{role}] {name} must be a table: [{TABLE}.{role}.{name}] with a command. "
                    f'If you have only one {role}, write {role} = "COMMAND" into [{TABLE}].'
                )
        return found

    def command(self, role: str, given: str | None, default: str) -> str:
        """Return the command of a program under test: `given` is a name in the configuration table, otherwise a command line."""
        rows = self.subjects(role)
        if given is None:
            given = next(iter(rows)) if len(rows) == 1 else default
        if given not in rows:
            return given
        row = rows[given]
        check_keys(f"{self.path}: [{TABLE}.{role}.{given}]", row, SUBJECT_KEYS)
        if "command" not in row:
            raise BadConfiguration(f"{self.path}: [{TABLE}.{role}.{given}] must have a command.")
        command: str = row["command"]
        return command


def check_keys(where: str, row: Mapping[str, Any], kinds: Mapping[str, Kind]) -> None:
    """Raise `BadConfiguration` for a key that is not in `kinds`, or for a value of the wrong type.

    `kinds` has the type of each allowed key; `where` names the file and the table for the error message.
    """
    for key, value in row.items():
        if key not in kinds:
            raise BadConfiguration(
                f"{where} has no key {key!r}{did_you_mean(key, kinds)} The allowed keys are {', '.join(kinds)}."
            )
        what, fits = kinds[key]
        if not fits(value):
            raise BadConfiguration(f"{where} {key} must be {what}.")


def did_you_mean(word: str, known: Collection[str]) -> str:
    """Return a suggestion for the end of an error message (such as "did you mean ...?"), or "" if no known word is similar to
    `word`.
    """
    near = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {near[0]!r}?" if near else "."


def find_root(here: Path) -> Path:
    """Return the nearest folder, `here` or a parent of `here`, that has a pyproject.toml or a codex-replay.toml.

    Otherwise return `here`.
    """
    return next((folder for folder in (here, *here.parents) if any((folder / name).is_file() for name in FILES)), here)


def read(folder: Path, options: Collection[str]) -> Configuration:
    """Read the configuration of the project in `folder`; `options` are the keys that the table `[tool.codex-replay]` may have.

    Raises `BadConfiguration` if the configuration is invalid.
    """
    found = [(path, table) for name in FILES if (table := _table(path := folder / name)) is not None]
    if not found:
        return Configuration()
    if len(found) > 1:
        both = " and ".join(str(path) for path, _ in found)
        raise BadConfiguration(f"[{TABLE}] is in {both}; keep only one of the two.")
    path, table = found[0]
    for key, value in table.items():
        if key not in options:
            raise BadConfiguration(
                f"{path}: [{TABLE}] has no key {key!r}{did_you_mean(key, options)} The allowed keys are {', '.join(options)}."
            )
        if key in SUITE_OF and isinstance(value, dict):
            continue
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise BadConfiguration(f"{path}: [{TABLE}] {key} must be a string.")
    return Configuration(path, table)


def _table(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        if (size := path.stat().st_size) > _MOST:
            raise BadConfiguration(f"{path} has {size} bytes; a configuration has at most {_MOST} bytes.")
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError:
        return None
    except BadConfiguration:
        raise
    except ValueError as error:
        raise BadConfiguration(f"{path} is not TOML: {error}.") from None
    except RecursionError:
        raise BadConfiguration(f"{path} is not TOML: it is nested too deeply.") from None
    for key in TABLE.split("."):
        if key not in found:
            return None
        found = found[key]
        if not isinstance(found, dict):
            raise BadConfiguration(f"{path}: {key} must be a table.")
    return found
