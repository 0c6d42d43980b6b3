"""`codex-replay run proxy --strength`: how many broken proxies the checks find; pytest does the work, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import click

from harness.plugin.progress import VARIABLE


class BadUse(click.UsageError):
    """The options do not fit together; the status is the one that pytest has for usage errors."""

    exit_code = 4


def run_strength(arguments: list[str], jobs: str, as_json: bool, plain: bool) -> int:
    """Run pytest with `--strength`; return 0 when all is killed, 1 when not, 4 for bad usage.

    `arguments` is pytest's command line. With `as_json` only the result goes to stdout; progress, and what went wrong, to stderr.
    """
    if not jobs.isdigit() or jobs == "0":
        raise BadUse(f"-n {jobs}: give the number of variants that shall run at a time.")
    arguments = [*arguments, "--strength", "--strength-jobs", jobs]
    if as_json:
        return _as_json(arguments)
    from harness.cli import run

    return run.run_live(arguments) if sys.stdout.isatty() and not plain else run.run_plain(arguments)


def _as_json(arguments: list[str]) -> int:
    """Print the result, and nothing else, on stdout."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "strength.json"
        status, printed = _watched([*arguments, "-q", "--strength-report", str(path)])
        if path.exists():
            sys.stdout.write(path.read_text(encoding="utf-8"))
            sys.stdout.flush()
        else:
            sys.stderr.write(printed)
    return status


def _watched(arguments: list[str]) -> tuple[int, str]:
    """Run pytest with a progress bar on stderr where that is a terminal; return its status and what it printed."""
    from rich.console import Console

    from harness.cli.run import _show, ending, wait

    read, write = os.pipe()
    child = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, VARIABLE: str(write)}, pass_fds=(write,)
    )
    os.close(write)
    printed: list[bytes] = []
    assert child.stdout is not None
    reader = threading.Thread(target=lambda out: printed.append(out.read()), args=(child.stdout,))
    reader.start()
    with ending(child) as noted:
        with open(read, encoding="utf-8") as events:
            _show(events, Console(stderr=True, quiet=not sys.stderr.isatty()))
        status = wait(child, noted)
    reader.join()
    return status, b"".join(printed).decode("utf-8", "replace")
