"""`codex-replay cassette stats`: count the frames of cassettes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from codex_replay.cli.cassette.options import JSON
from codex_replay.cli.io.console import aside, console, progress, sentences
from codex_replay.cli.io.stdout import for_programs
from codex_replay.core.text.escape import escape

if TYPE_CHECKING:
    from codex_replay.shell.cassettes.stats import Stats


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE|DIR...")
@JSON
@sentences
def stats(files: tuple[str, ...], as_json: bool) -> None:
    """Count the frames of cassettes by seam, direction and kind, with their bytes and the duration."""
    from codex_replay.shell.cassettes.lint import find_files
    from codex_replay.shell.cassettes.stats import count

    with progress("frames counted") as shown:
        counted = [count(path, shown.step) for path in find_files(files, aside)]
    if as_json:
        for_programs(json.dumps([one.as_json() for one in counted], indent=2))
        return
    for one in counted:
        _print_stats(one)


def _print_stats(one: Stats) -> None:
    from rich import box
    from rich.table import Table

    state = "cut short" if one.truncated else "whole"
    click.echo(f"{one.path}: codex {escape(one.codex)}, {one.frames} frames, {one.size} bytes, {one.duration:.3f} s, {state}")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, right in (("seam", False), ("from", False), ("what", False), ("frames", True), ("bytes", True)):
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for (seam, sender, what), (number, size) in one.rows():
        table.add_row(seam, sender, escape(what), str(number), str(size))
    console().print(table)
