"""Read the script of a fake model from a file that the user names: JSON or YAML."""

from __future__ import annotations

from pathlib import Path

from codex_replay.cli.io.console import Unable
from codex_replay.protocol.script.script import BadScript
from codex_replay.shell.files.script_file import read_script


def load_script(path: Path) -> object:
    """Read a script from a JSON or YAML file; raises `Unable` with a sentence if the file is not a script."""
    try:
        return read_script(path)
    except BadScript as error:
        raise Unable(str(error)) from None
