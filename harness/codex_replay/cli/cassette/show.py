"""`codex-replay cassette show`: print a cassette as a timeline, or write it as a web page."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys

import click

from codex_replay.cli.cassette.options import replacing
from codex_replay.cli.io.console import PLAIN_WIDTH, Unable, aside, coloured, progress, sentences
from codex_replay.cli.io.stdout import coloured_line, disconnected
from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.text.escape import escape
from codex_replay.shell.cassettes.file import CassetteReader, is_readable_once


@click.command()
@click.argument("file", required=False)
@click.option(
    "--html",
    "page",
    metavar="[OUT]",
    is_flag=False,
    flag_value="-",
    help="Write one HTML page to OUT (default: stdout).",
)
@click.option("--full", is_flag=True, help="Show the whole content of each frame.")
@click.option(
    "--grep",
    "pattern",
    metavar="REGEX",
    help="Show only frames whose timeline line (from the seam on) or whole content matches this regular expression.",
)
@click.option("--frame", "number", type=int, metavar="N", help="Show only frame N, in full.")
@click.option("--width", type=click.IntRange(min=40), help="The maximum width of a line (default: the width of the terminal).")
@sentences
def show(file: str | None, page: str | None, full: bool, pattern: str | None, number: int | None, width: int | None) -> None:
    """Print a cassette as a timeline: number, seconds, seam, direction, kind and summary of each frame.

    `->` marks frames to the server (app-server or backend), `<-` marks frames from the server. `--html OUT` writes a web page
    instead: a searchable sequence diagram of the JSON-RPC and HTTP frames.
    """
    from codex_replay.cli.io.timeline import Timeline

    if file is None and page not in (None, "-"):  # `show --html FILE`: the page goes to stdout
        file, page = page, "-"
    if file is None:
        raise click.UsageError("Missing argument 'FILE': name the cassette to show.")
    if page is not None:
        if full or pattern is not None or number is not None or width is not None:
            raise click.UsageError("--html shows every frame, and the page has its own search; remove the other options.")
        _write_page(file, page)
        return
    try:
        wanted = re.compile(pattern) if pattern else None
    except re.error as error:
        raise click.UsageError(f"--grep {pattern!r} is not a regular expression: {error}.") from None
    columns = width or (shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if sys.stdout.isatty() else PLAIN_WIDTH)
    found = False
    with CassetteReader(file) as reader:
        timeline = Timeline(columns, coloured())
        if wanted is None and number is None:
            click.echo(_headline(reader.header))
        for frame in reader:
            label = timeline.label(frame)
            if number is not None and frame.n != number:
                continue
            if wanted is not None and not wanted.search(f"{timeline.direction(frame)} {label} {_text(frame)}"):
                continue
            found = True
            coloured_line(timeline.full(frame) if full or number is not None else timeline.line(frame))
            if number is not None or disconnected():
                return
        if number is not None and not found:
            raise Unable(f"{file}: there is no frame {number}.")
        if wanted is not None and not found:
            click.echo(f"codex-replay: {file}: no frame matches {pattern!r}.", err=True)
        if reader.truncated:
            click.echo(f"codex-replay: {reader.truncated}", err=True)


def _write_page(file: str, out: str) -> None:
    """Write the web page for a cassette to the path `out`, or to stdout if `out` is "-"."""
    from pathlib import Path

    from codex_replay.report.cassette_trace import cassette_trace, unmarked
    from codex_replay.report.page.build import write_cassette_html

    if out == "-" and sys.stdout.isatty():
        raise click.UsageError(f"an HTML page is not printed to a terminal; name a file: cassette show {file} --html OUT.html.")
    if is_readable_once(file):
        raise Unable(f"{file}: this is a pipe or a device, and a page needs a cassette that can be read twice; name a file.")
    with CassetteReader(file) as reader:
        header = reader.header
    if why := unmarked(header.codex):
        aside(why)
    with progress("frames read") as shown:
        trace = cassette_trace(file, escape(str(header.case)), shown.step)
    about = {"cassette": file, "codex": str(header.codex), "origin": _origin(header), "frames": f"{len(trace['frames'])}"}
    if out == "-":
        write_cassette_html(trace, about, sys.stdout)
        return
    if os.path.exists(out) and os.path.samefile(out, file):
        raise Unable(f"{out}: the page would overwrite the cassette; name another file.")
    with replacing(out) as place:
        write_cassette_html(trace, about, Path(place))
    if trace["truncated"]:
        click.echo(f"codex-replay: {file}: the page is incomplete, because the recording was cut short or is too long.", err=True)
    click.echo(f"{out}: {len(trace['frames'])} frames.")


def _origin(header: Header) -> str:
    return ", ".join(f"{seam} {origin}" for seam, origin in header.origin.items()) if type(header.origin) is dict else "unknown"


def _headline(header: Header) -> str:
    origin = _origin(header)
    imported = f", imported from {header.extra['imported']}" if "imported" in header.extra else ""
    return escape(f"{header.case}: codex {header.codex}; {origin}{imported}")


def _text(frame: Frame) -> str:
    if frame.seam == "rpc":
        return frame.raw.decode("utf-8", "backslashreplace")
    return json.dumps(frame.payload, ensure_ascii=False)
