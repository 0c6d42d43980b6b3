"""Write a small program that a client under test starts as its `codex`.

The small program then becomes the program that the case has chosen (with exec).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from codex_replay.shell.process.subject import MARK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def write_launcher(path: Path, argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Write an executable that becomes `argv` followed by the executable's own arguments, with only this environment; return its
    path."""
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in env.items())
    # The mark is how a process is found again that has left its group.
    mark = f'{MARK}="${{{MARK}-}}"'
    path.write_text(f'#!/bin/sh\nexec env -i {settings} {mark} {shlex.join(argv)} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)
