"""`codex-replay cassette diff`: compare two cassettes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict

import click

from harness.cli.cassette_options import JSON
from harness.cli.console import Unable, printable, progress, sentences
from harness.core.counted import counted
from harness.core.frames import Frame
from harness.shell.cassette import CassetteReader


@click.command()
@click.argument("a")
@click.argument("b")
@click.option(
    "--max", "most", type=click.IntRange(min=1), default=10, show_default=True, help="Print at most so many differences."
)
@JSON
@sentences
def diff(a: str, b: str, most: int, as_json: bool) -> None:
    """Compare two cassettes after normalisation: ids, times, paths and declared races do not count.

    The smallest difference stands first; of those of one id the first is told, and the others are counted.
    Exit status: 0 equal, 1 different, 2 could not compare.
    """
    from harness.protocol.compare import compare
    from harness.protocol.followers import following, gathered

    version, left = _whole(a)
    _, right = _whole(b)
    if not left and not right:
        raise Unable(f"{a} and {b}: neither holds a frame, so there is nothing to compare.")
    found = compare(left, right, version)
    if as_json:
        differences = [{**asdict(one), "sentence": one.sentence()} for one in found.differences]
        click.echo(json.dumps({"equal": found.equal, "a": found.a, "b": found.b, "differences": differences}, indent=2))
    elif found.equal:
        click.echo(f"Equal after normalisation: {counted(found.a, 'event')}.")
    else:
        click.echo(
            f"Different: {len(found.differences)} difference(s) between {found.a} and {found.b} events, the smallest first."
        )
        told = gathered(found.differences)
        for one, more in told[:most]:
            click.echo(f"  {printable(one.sentence())}{following(more)}")
        if left_out := sum(1 + more for _, more in told[most:]):
            click.echo(f"  ... and {left_out} more (--max).")
    if not found.equal:
        raise SystemExit(1)


def _whole(path: str) -> tuple[str, list[Frame]]:
    """Read a cassette into memory, and say so if it was cut short."""
    with CassetteReader(path) as reader, progress(f"frames of {os.path.basename(path)}") as shown:
        frames = []
        for frame in reader:
            frames.append(frame)
            shown.step()
        if reader.truncated:
            click.echo(f"codex-replay: {reader.truncated}", err=True)
        return reader.header.codex, frames
