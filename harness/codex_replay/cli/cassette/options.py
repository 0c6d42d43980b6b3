"""Parts that all commands of `codex-replay cassette` share: options, the user's own secrets, and the output file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from codex_replay.cli.io.console import Unable
from codex_replay.cli.io.literals import LITERAL, BadLiteral, named, redactor_with
from codex_replay.shell.cassettes.file import CassetteError
from codex_replay.shell.files import atomic

if TYPE_CHECKING:
    from codex_replay.core.redact.redactor import Redactor

__all__ = ["JSON", "LITERAL", "keep_what_is_there", "redactor_of", "replacing"]

JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def redactor_of(literals: tuple[str, ...]) -> Redactor:
    """Return a redactor that also removes the user's own secrets."""
    try:
        return redactor_with(named(literals))
    except BadLiteral as error:
        raise Unable(f"--literal: {error}.") from None


def keep_what_is_there(out: str | None, force: bool) -> None:
    """Raise a usage error if the output file exists, unless --force was given."""
    if out is not None and os.path.isfile(out) and not force:
        raise Unable(f"{out} already exists and was not changed; choose another file, or add --force.")


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """Yield a temporary file to write to; at the end, move this file to `path`.

    If an error occurs, delete the temporary file and leave `path` unchanged.
    """
    if os.path.isdir(path):
        raise CassetteError(f"{path}: this is a folder; name a file to write.")
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise CassetteError(f"{path}: the folder does not exist; create it first.")
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        yield path
        return
    with atomic.replacing(path) as draft:
        try:
            yield draft
        except CassetteError as error:
            raise CassetteError(str(error).replace(draft, path)) from None
