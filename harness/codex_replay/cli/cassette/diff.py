"""`codex-replay cassette diff`: compare two cassettes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict

import click

from codex_replay.cli.cassette.options import JSON
from codex_replay.cli.io.console import Unable, aside, progress, sentences
from codex_replay.cli.io.stdout import for_programs
from codex_replay.cli.io.tables import CODEX, note_with_option
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.text.escape import escape
from codex_replay.core.text.numbers import plural
from codex_replay.shell.cassettes.file import CassetteReader


@click.command()
@click.argument("a")
@click.argument("b")
@click.option(
    "--max",
    "limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="The maximum number of differences to print.",
)
@CODEX
@JSON
@sentences
def diff(a: str, b: str, limit: int, codex: str | None, as_json: bool) -> None:
    """Compare two cassettes after normalisation: ids, times, paths and declared races are ignored.

    List the smallest difference first. If an id differs in several places, list only the first place, and count the others.
    Exit status: 0 if the cassettes are equal, 1 if they differ, 2 if the comparison failed.
    """
    from codex_replay.protocol.recordings.compare import compare
    from codex_replay.protocol.recordings.repeated_ids import following, gathered

    version, left = _whole(a)
    other, right = _whole(b)
    if not left and not right:
        raise Unable(f"{a} and {b}: both have no frames, so there is nothing to compare.")
    found = compare(left, right, codex or version, codex or other)
    if found.note:
        aside(note_with_option(found.note))
    if as_json:
        differences = [{**asdict(one), "sentence": one.sentence()} for one in found.differences]
        missing = [found.note] if found.note else []
        result = {"equal": found.equal, "a": found.a, "b": found.b, "missing": missing, "differences": differences}
        for_programs(json.dumps(result, indent=2))
    elif found.equal:
        click.echo(f"Equal after normalisation: {plural(found.a, 'event')}.")
    else:
        click.echo(
            f"Different: {len(found.differences)} difference(s) between {found.a} and {found.b} events, the smallest first."
        )
        listed = gathered(found.differences)
        for one, more in listed[:limit]:
            click.echo(f"  {escape(one.sentence())}{following(more)}")
        if left_out := sum(1 + more for _, more in listed[limit:]):
            click.echo(f"  ... and {left_out} more (--max).")
    if not found.equal:
        raise SystemExit(1)


def _whole(path: str) -> tuple[str, list[Frame]]:
    """Read a cassette into memory; print a note on stderr if its recording was cut short."""
    with CassetteReader(path) as reader, progress(f"frames of {os.path.basename(path)}") as shown:
        frames = []
        for frame in reader:
            frames.append(frame)
            shown.step()
        if reader.truncated:
            click.echo(f"codex-replay: {reader.truncated}", err=True)
        return reader.header.codex, frames
