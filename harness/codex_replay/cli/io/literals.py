"""Read the secrets that only the user knows, from the option `--literal TEXT`.

Error messages contain only the number of a `--literal` on the command line, never its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from codex_replay.core.redact.redactor import Redactor

LITERAL = click.option("--literal", "literals", multiple=True, metavar="TEXT", help="A text to redact. Repeatable.")


class BadLiteral(ValueError):
    """A literal cannot be redacted; the text of the exception is the end of a sentence, with the number of the literal."""


def named(literals: tuple[str, ...]) -> dict[str, str]:
    """Return the replacement of each literal; raise a usage error for an empty literal."""
    if any(not literal for literal in literals):
        raise click.UsageError("--literal: an empty text cannot be replaced.")
    return {literal: f"redacted-{number}" for number, literal in enumerate(literals, 1)}


def from_environment(environ: Mapping[str, str], literals: Mapping[str, str]) -> dict[str, str]:
    """Return the placeholder for each text in `literals`, and for each secret in the environment.

    An environment value that is a part of a placeholder cannot be redacted, and is omitted.
    """
    from codex_replay.core.redact.environment import environment_secrets

    found = dict(literals)
    for _, secret in environment_secrets(environ):
        becomes = f"redacted-{len(found) + 1}"
        if secret not in found and _fit({secret: becomes}, None):
            found[secret] = becomes
    return found


def redactor_with(literals: Mapping[str, str], paths: Mapping[str, str] | None = None) -> Redactor:
    """Return a redactor that also replaces the texts in `literals` and the directories in `paths`.

    Raises `BadLiteral`, or `ValueError` if a directory cannot be replaced.
    """
    from codex_replay.core.redact.redactor import Redactor

    try:
        return Redactor(paths=paths, literals=literals)
    except ValueError:
        Redactor(paths=paths)  # fails where it is the directory's fault
    number = 1
    while number < len(literals) and _fit(dict(list(literals.items())[:number]), paths):
        number += 1
    which = f"text number {number}" if len(literals) > 1 else "this text"
    raise BadLiteral(f"{which} cannot be replaced: it is blank, or part of a placeholder; give a longer text")


def _fit(literals: Mapping[str, str], paths: Mapping[str, str] | None) -> bool:
    from codex_replay.core.redact.redactor import Redactor

    try:
        Redactor(paths=paths, literals=literals)
    except ValueError:
        return False
    return True


def without(text: str, literals: Mapping[str, str]) -> str:
    """Return a message without the user's literals, which a text that the message quotes may contain."""
    from codex_replay.core.redact.literals import own_finders

    data = text.encode("utf-8", "surrogateescape")
    for old in sorted(literals, key=len, reverse=True):
        if old.strip("/\\ "):
            for finder in own_finders({old: literals[old]}, "literal"):
                for span in reversed(list(finder.find(data, data.lower()))):
                    data = data[: span.start] + (span.fixed or b"") + data[span.end :]
    return data.decode("utf-8", "surrogateescape")
