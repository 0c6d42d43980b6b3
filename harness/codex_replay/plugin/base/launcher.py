"""Write a small program that a client under test starts as its `codex`.

The small program replaces itself (by `exec`) with the program that the case has chosen.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from codex_replay.shell.process.subject import MARK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def write_launcher(path: Path, argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Write an executable script that replaces itself with the command `argv`, in the environment `env`; return its path.

    The script passes its own arguments on to the command.
    """
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in env.items())
    # The mark is how a process is found again that has left its group.
    mark = f'{MARK}="${{{MARK}-}}"'
    path.write_text(f'#!/bin/sh\nexec env -i {settings} {mark} {shlex.join(argv)} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)
