"""The live display of a run: a progress bar, the failures so far, and at the end the output of pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING, Any

from codex_replay.cli.io.console import console
from codex_replay.cli.run.child import started, wait
from codex_replay.core.text.visible import visible
from codex_replay.plugin.base.progress import LAST_WORDS, VARIABLE

if TYPE_CHECKING:
    from rich.console import Console


def run_live(arguments: list[str]) -> int:
    """Run pytest with a progress bar; afterwards, print its output from the first failure on."""
    read, write = os.pipe()
    environment = {**os.environ, LAST_WORDS: "1", VARIABLE: str(write)}
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "pass_fds": (write,)}
    printed: list[bytes] = []
    with started([*arguments, "-q", "--color=yes"], env=environment, **streams) as child:
        os.close(write)
        assert child.stdout is not None
        reader = threading.Thread(target=_keep, args=(child.stdout, printed))
        reader.start()
        with open(read, encoding="utf-8") as events:
            _show(events, console())
        status = wait(child)
    reader.join()
    child.stdout.close()
    sys.stdout.buffer.write(_from_first_section(b"".join(printed)))
    sys.stdout.flush()
    return status


def _keep(stream: IO[bytes], printed: list[bytes]) -> None:
    printed.extend(iter(lambda: stream.read1(1 << 16), b""))  # type: ignore[attr-defined]


def _show(events: IO[str], out: Console) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    failed = 0
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task("collecting", total=None)
        for line in events:
            event = json.loads(line)
            if "collected" in event:
                progress.update(task, total=event["collected"], description="")
            if "case" not in event:
                continue
            name = visible(event["case"].rsplit("/", 1)[-1])
            if event["outcome"] == "failed":
                failed += 1
                out.print(f"FAILED {name}", style="red")
            progress.update(task, advance=1, description=name + (f"  ({failed} failed)" if failed else ""))


def _from_first_section(printed: bytes) -> bytes:
    """Return pytest's output from its first heading on, without the progress dots.

    If pytest printed no heading, return the whole output.
    """
    lines = printed.splitlines(keepends=True)
    for i, line in enumerate(lines):
        if b"=====" in line:
            return b"".join(lines[i:])
    return printed
