"""A command line that an option names: its words, and where its program is."""

from __future__ import annotations

import os
import shlex
import shutil


class BadCommand(ValueError):
    """No such command; the text is a sentence that says what would be one."""


def command_of(option: str, command: str, instead: str) -> tuple[str, ...]:
    """Return the words of a command, its program by its whole path; raises `BadCommand`.

    `option` is what the sentence begins with, the option as it was given; `instead` is how it ends: what else may be given.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise BadCommand(f"{option}: this is no command line ({error}).") from None
    found = shutil.which(words[0]) if words else None
    if found is None and words and os.path.isfile(words[0]):
        raise BadCommand(f"{option}: {words[0]} is a file, but no program; put before it what runs it, as in node server.js.")
    if found is None:
        raise BadCommand(f"{option}: there is no such program; give {instead}.")
    return (os.path.abspath(found), *words[1:])
