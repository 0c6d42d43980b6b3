"""Convert the SUITE arguments of `codex-replay run` to paths for pytest, and check the -k expression."""

from __future__ import annotations

import os
from pathlib import Path

import click

from codex_replay.plugin.base.places import installed_suites


class BadUse(click.UsageError):
    """The arguments are invalid; the command exits with pytest's status for usage errors."""

    exit_code = 4


class NoSuchSuite(BadUse):
    """A SUITE argument is neither the name of a suite nor a path."""


def resolve(names: tuple[str, ...]) -> list[str]:
    """Return the paths for the SUITE arguments of `codex-replay run`.

    A SUITE argument is the name of a suite, a path in a suite, any other path, or a node id of pytest. Raises `NoSuchSuite` if an
    argument names neither a suite nor an existing path.

    A suite in the working directory takes precedence over an installed suite. A SUITE argument may name a module without
    its subfolder: all subfolders of the suite are searched.
    """
    folders = [folder for folder in (Path("suites"), installed_suites()) if folder.is_dir()]
    if not folders:
        raise NoSuchSuite("There are no suites in this folder or in the installed package: install codex-replay again.")
    found = []
    for name in names:
        if not name:
            raise NoSuchSuite("A SUITE argument is empty; remove it to run all suites.")
        path, colons, rest = name.partition("::")
        suite = next((place for folder in folders if (place := _place(folder, path))), None)
        if suite is not None and not path.startswith((".", "/")):
            found.append(f"{suite}{colons}{rest}")
        elif os.path.exists(path):
            found.append(name)
        elif path.startswith("suites/") and (installed_suites().parent / path).exists():  # so a run calls an installed case
            found.append(str(installed_suites().parent / name))
        else:
            there = folders[-1].iterdir()
            known = ", ".join(sorted(item.name for item in there if item.is_dir() and not item.name.startswith("_")))
            raise NoSuchSuite(
                f"There is no suite {name!r}. The suites are {known}. You can also name the path of your own suite."
            )
    return found or [str(folders[0])]


def _place(suites: Path, name: str) -> Path | None:
    """Return the path of the suite `name`, or of a module `SUITE/test_x.py` in any folder of the suite.

    Return None if the installed suites do not contain `name`.
    """
    if (suites / name).exists():
        return suites / name
    suite, _, module = name.partition("/")
    rooms = sorted((suites / suite).glob(f"*/{module}")) if module.startswith("test_") and "/" not in module else []
    return rooms[0] if rooms else None


def no_expression(chosen: str) -> str:
    """Return a sentence that explains why pytest cannot parse the -k expression `chosen`.

    pytest itself would print a traceback for a wrong expression, and with several workers only after a delay.
    """
    from _pytest.mark.expression import Expression

    try:
        Expression.compile(chosen)
    except Exception as error:  # a SyntaxError, in earlier versions of pytest a ParseError
        why = str(error).replace(" (<pytest match expression>, line 1)", "")
        return f"-k {chosen!r} is not an expression: {why}. Combine names with and, or, not, like pytest's -k."
    return ""
