"""`codex-replay cassette`: look at cassettes, check, compare, redact and import them."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from harness.cli.console import PLAIN_WIDTH, Unable, coloured, console, printable, progress, sentences
from harness.cli.stdout import gone
from harness.core.frames import Frame, Header, encode_header, parse_line
from harness.shell.cassette import CassetteError, CassetteReader, CassetteWriter
from harness.shell.files import named

if TYPE_CHECKING:
    from harness.core.redact import Redactor
    from harness.shell.lint import Report
    from harness.shell.stats import Stats

_JSON = click.option("--json", "as_json", is_flag=True, help="Write the outcome as JSON.")
_LITERAL = click.option("--literal", "literals", multiple=True, metavar="TEXT", help="A secret of yours to take out; repeatable.")


@click.group(name="cassette")
def group() -> None:
    """Look at cassettes, check, compare, redact and import them."""


# ---------------------------------------------------------------------------------------------------------------- lint


@group.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR...")
@_JSON
@click.option("--notes", is_flag=True, help="Print notes too: requests without a reply, payloads cut for size, the other side.")
@click.option("--codex", metavar="V", help="Validate against this Codex's bundle, or a bundle of yours (default: the header's).")
@click.option(
    "--judge",
    type=click.Choice(["server", "client", "both"]),
    default="server",
    show_default=True,
    help="Whose frames must be valid and known; what the other side does wrong is a note.",
)
@sentences
def lint(paths: tuple[str, ...], as_json: bool, notes: bool, codex: str | None, judge: str) -> None:
    """Check cassettes: schema, numbering, exactness, footer, origin, replies, secrets, and each frame by the bundle.

    Of a folder all *.ndjson in it are checked. Exit status: 0 sound, 1 something is wrong, 2 not readable as a cassette.
    """
    from harness.protocol.bundle import BundleError
    from harness.shell.bundle_check import bundle_checks, bundle_of
    from harness.shell.lint import find_files
    from harness.shell.lint import lint as check

    checks = bundle_checks(codex, judge)
    try:
        if codex is not None:
            bundle_of(codex)
        with progress("frames checked") as shown:
            reports = [check(path, checks, shown.step) for path in find_files(paths)]
    except BundleError as error:
        raise Unable(str(error)) from None
    if as_json:
        files = [{**asdict(report), "ok": report.ok} for report in reports]
        click.echo(json.dumps({"ok": all(report.ok for report in reports), "files": files}, indent=2))
    else:
        for report in reports:
            _print_report(report, notes)
        bad = sum(not report.ok for report in reports)
        verdict = f"{bad} not sound." if bad else "all sound."
        click.echo(f"{len(reports)} cassette(s), {sum(report.frames for report in reports)} frames: {verdict}")
    if any(report.unreadable for report in reports):
        raise SystemExit(2)
    if not all(report.ok for report in reports):
        raise SystemExit(1)


def _print_report(report: Report, notes: bool) -> None:
    if report.unreadable:
        click.echo(f"codex-replay: {report.unreadable}", err=True)
    for finding in report.findings:
        if finding.level == "error" or notes:
            frame = f" (frame {finding.frame})" if finding.frame is not None else ""
            colour = "red" if finding.level == "error" else "yellow"
            check = click.style(finding.check, fg=colour) if coloured() else finding.check
            click.echo(f"{report.path}, line {finding.line}{frame}: {check}: {printable(finding.message)}")


# ---------------------------------------------------------------------------------------------------------------- show


@group.command()
@click.argument("file", required=False)
@click.option(
    "--html",
    "page",
    metavar="[OUT]",
    is_flag=False,
    flag_value="-",
    help="Write one HTML page, to be opened in a browser, to OUT; without OUT to stdout.",
)
@click.option("--full", is_flag=True, help="Show each frame with all that it carries.")
@click.option("--grep", "pattern", metavar="REGEX", help="Only frames whose line matches.")
@click.option("--frame", "number", type=int, metavar="N", help="Only frame N, in full.")
@click.option("--width", type=click.IntRange(min=40), help="Columns of a line; default: the terminal's.")
@sentences
def show(file: str | None, page: str | None, full: bool, pattern: str | None, number: int | None, width: int | None) -> None:
    """Print a cassette as a timeline: number, seconds, seam, direction, what it is, what it says.

    `->` goes to the server (app-server or backend), `<-` comes from it. `--html OUT` writes the same as a page to look at:
    a sequence diagram of both seams, each frame folded, searchable.
    """
    from harness.cli.timeline import Timeline

    if file is None and page not in (None, "-"):  # `show --html FILE`: the page goes to stdout
        file, page = page, "-"
    if file is None:
        raise click.UsageError("Missing argument 'FILE': which cassette is to be shown?")
    if page is not None:
        if full or pattern is not None or number is not None or width is not None:
            raise click.UsageError("--html shows every frame, and its page has a search of its own; leave the other options out.")
        _write_page(file, page)
        return
    try:
        wanted = re.compile(pattern) if pattern else None
    except re.error as error:
        raise click.UsageError(f"--grep {pattern!r} is no regular expression: {error}.") from None
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
            if wanted is not None and not wanted.search(f"{label} {_text(frame)}"):
                continue
            found = True
            click.echo(timeline.full(frame) if full or number is not None else timeline.line(frame))
            if number is not None or gone():
                return
        if number is not None and not found:
            raise Unable(f"{file}: there is no frame {number}.")
        if wanted is not None and not found:
            click.echo(f"codex-replay: {file}: no frame matches {pattern!r}.", err=True)
        if reader.truncated:
            click.echo(f"codex-replay: {reader.truncated}", err=True)


def _write_page(file: str, out: str) -> None:
    """Write the page of a cassette to the path `out`, or to stdout for "-"."""
    from pathlib import Path

    from harness.report.cassette_story import cassette_story
    from harness.report.page import write_cassette_html

    if out == "-" and sys.stdout.isatty():
        raise click.UsageError(f"a page is nothing for a terminal; say where to write it: cassette show {file} --html OUT.html.")
    with CassetteReader(file) as reader:
        header = reader.header
    with progress("frames read") as shown:
        story = cassette_story(file, printable(str(header.case)), shown.step)
    about = {"cassette": file, "codex": str(header.codex), "origin": _origin(header), "frames": f"{len(story['frames'])}"}
    if out == "-":
        write_cassette_html(story, about, sys.stdout)
        return
    if os.path.exists(out) and os.path.samefile(out, file):
        raise Unable(f"{out}: the page would overwrite the cassette; name another file.")
    with _replacing(out) as place:
        write_cassette_html(story, about, Path(place))
    if story["truncated"]:
        click.echo(
            f"codex-replay: {file}: the page does not hold all of it; the recording was cut short, or is too long.", err=True
        )
    click.echo(f"{out}: {len(story['frames'])} frames.")


def _origin(header: Header) -> str:
    return ", ".join(f"{seam} {said}" for seam, said in header.origin.items()) if type(header.origin) is dict else "unknown"


def _headline(header: Header) -> str:
    origin = _origin(header)
    imported = f", imported from {header.extra['imported']}" if "imported" in header.extra else ""
    return printable(f"{header.case}: codex {header.codex}; {origin}{imported}")


def _text(frame: Frame) -> str:
    if frame.seam == "rpc":
        return frame.raw.decode("utf-8", "backslashreplace")
    return json.dumps(frame.payload, ensure_ascii=False)


# ---------------------------------------------------------------------------------------------------------------- diff


@group.command()
@click.argument("a")
@click.argument("b")
@click.option(
    "--max", "most", type=click.IntRange(min=1), default=10, show_default=True, help="Print at most so many differences."
)
@_JSON
@sentences
def diff(a: str, b: str, most: int, as_json: bool) -> None:
    """Compare two cassettes after normalisation: ids, times, paths and declared races do not count.

    The smallest difference stands first. Exit status: 0 equal, 1 different, 2 could not compare.
    """
    from harness.protocol.compare import compare

    version, left = _whole(a)
    _, right = _whole(b)
    if not left and not right:
        raise Unable(f"{a} and {b}: neither holds a frame, so there is nothing to compare.")
    found = compare(left, right, version)
    if as_json:
        differences = [{**asdict(one), "sentence": one.sentence()} for one in found.differences]
        click.echo(json.dumps({"equal": found.equal, "a": found.a, "b": found.b, "differences": differences}, indent=2))
    elif found.equal:
        click.echo(f"Equal after normalisation: {found.a} events.")
    else:
        click.echo(
            f"Different: {len(found.differences)} difference(s) between {found.a} and {found.b} events, the smallest first."
        )
        for one in found.differences[:most]:
            click.echo(f"  {printable(one.sentence())}")
        if len(found.differences) > most:
            click.echo(f"  ... and {len(found.differences) - most} more (--max).")
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


# --------------------------------------------------------------------------------------------------------------- stats


@group.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE|DIR...")
@_JSON
@sentences
def stats(files: tuple[str, ...], as_json: bool) -> None:
    """Count the frames of cassettes by seam, direction and kind, with their bytes and the duration."""
    from harness.shell.lint import find_files
    from harness.shell.stats import count

    with progress("frames counted") as shown:
        counted = [count(path, shown.step) for path in find_files(files)]
    if as_json:
        click.echo(json.dumps([one.as_json() for one in counted], indent=2))
        return
    for one in counted:
        _print_stats(one)


def _print_stats(one: Stats) -> None:
    from rich import box
    from rich.table import Table

    state = "cut short" if one.truncated else "whole"
    click.echo(f"{one.path}: codex {printable(one.codex)}, {one.frames} frames, {one.size} bytes, {one.duration:.3f} s, {state}")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, right in (("seam", False), ("from", False), ("what", False), ("frames", True), ("bytes", True)):
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for (seam, sender, what), (number, size) in one.rows():
        table.add_row(seam, sender, printable(what), str(number), str(size))
    console().print(table)


# -------------------------------------------------------------------------------------------------------------- redact


@group.command()
@click.argument("file")
@click.option("--out", metavar="G", help="The file to write.")
@click.option("--in-place", is_flag=True, help="Replace FILE itself; only where every frame is authored.")
@click.option("--force", is_flag=True, help="Replace G if it is there.")
@_LITERAL
@sentences
def redact(file: str, out: str | None, in_place: bool, force: bool, literals: tuple[str, ...]) -> None:
    """Take the secrets out of a cassette: tokens, keys, JWTs, accounts, e-mails, home folders, and each --literal.

    A secret that is streamed in pieces goes too: a placeholder stands where it begins. Everything else keeps its bytes. A
    recording is never changed itself: write another file with --out.
    """
    if (out is None) == (not in_place):
        raise click.UsageError("Say where to write: either --out G or --in-place.")
    from harness.core.streamed import with_piece

    redactor = _redactor(literals)
    changed = 0
    kept: list[int] = []
    with CassetteReader(file) as reader:
        if in_place and set(reader.header.origin.values()) != {"authored"}:
            raise Unable(f"{file}: it holds recorded frames, which are evidence and stay as they are; use --out.")
        if out is not None and os.path.exists(out) and os.path.samefile(file, out):
            raise Unable(f"{out}: this is the cassette itself; choose another file.")
        if out is not None and os.path.isfile(out) and not force:
            raise Unable(f"{out}: there is a file already, and it is kept; choose another one, or say --force.")
        header = parse_line(redactor.redact(encode_header(reader.header)))
        pieces = _streamed(file, redactor)
        assert isinstance(header, Header)
        with _replacing(out or file) as place, progress("frames redacted") as shown:
            writer = CassetteWriter(place, header)
            try:
                for at, frame in enumerate(reader, 1):
                    whole = with_piece(frame, pieces[at]) if at in pieces else frame
                    if whole is None:
                        kept.append(at)
                    clean = _redacted(whole or frame, redactor)
                    changed += clean is not frame
                    writer.write(clean)
                    shown.step()
                if not reader.truncated:
                    writer.close()
            finally:
                writer.abandon()
        if reader.truncated:
            click.echo(f"codex-replay: {reader.truncated} The copy is cut short as well.", err=True)
    click.echo(f"{out or file}: {changed} of {writer.frames} frames redacted.", err=True)
    if kept:
        click.echo(
            f"codex-replay: {out or file}: a part of a secret stays in frame {kept[0]}, whose event has an unusual form; "
            "do not share this file.",
            err=True,
        )
        raise SystemExit(1)


def _streamed(file: str, redactor: Redactor) -> dict[int, bytes]:
    """Return what becomes of the pieces in which a recording streams a secret, by the place of their frames."""
    from harness.core.streamed import Streams

    streams = Streams()
    with CassetteReader(file) as reader, progress("frames read") as shown:
        for place, frame in enumerate(reader, 1):
            streams.add(frame, place)
            shown.step()
    return streams.mended(redactor)


def _redactor(literals: tuple[str, ...]) -> Redactor:
    """Return a redactor that knows the user's own secrets too."""
    from harness.core.redact import Redactor

    if any(not literal for literal in literals):
        raise click.UsageError("--literal: an empty text cannot be taken out.")
    try:
        return Redactor(literals={literal: f"redacted-{number}" for number, literal in enumerate(literals, 1)})
    except ValueError as error:
        raise Unable(f"--literal: {error}.") from None


def _redacted(frame: Frame, redactor: Redactor) -> Frame:
    """Return the frame without its secrets, or the very same one if it has none."""
    if frame.seam == "rpc":
        raw = redactor.redact(frame.raw)
        if raw == frame.raw:
            return frame
        return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, raw, extra=frame.extra)
    payload = redactor.value(frame.payload)
    if payload == frame.payload:
        return frame
    return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, b"", payload, frame.conn, extra=frame.extra)


# -------------------------------------------------------------------------------------------------------------- import


@group.command("import")
@click.argument("file")
@click.option("--format", "form", type=click.Choice(["tee", "proto-events"]), required=True, help="What FILE is.")
@click.option("--out", required=True, metavar="F", help="The cassette to write.")
@click.option("--codex", metavar="VERSION", help="The Codex that was recorded; default: what its userAgent says.")
@click.option("--case", metavar="NAME", help="The name of the case; default: the name of FILE.")
@click.option("--authored", is_flag=True, help="FILE was written by hand or by a script, not by a real program.")
@_LITERAL
@sentences
def import_(
    file: str, form: str, out: str, codex: str | None, case: str | None, authored: bool, literals: tuple[str, ...]
) -> None:
    """Make a cassette of another tool's recording: a tee's log, or a proxy's proto-events.

    Secrets are taken out on the way. A payload that was cut for size is marked and never taken for whole.
    """
    from harness.shell import importers
    from harness.shell.codex_origin import bundle_of

    read = importers.READERS[form]
    source = importers.Source(file)
    try:
        if os.path.exists(out) and os.path.samefile(file, out):
            raise Unable(f"{out}: this is the file to import; choose another file.")
        with open(file, "rb") as lines:
            version = codex or next(filter(None, map(importers.codex_version, read(lines, importers.Source(file)))), "unknown")
        redactor = _redactor(literals)
        name = redactor.text(case or os.path.splitext(os.path.basename(file))[0])
        origin = {"rpc": "authored" if authored else "recorded"}
        header = Header(version, bundle_of(version), name, origin, {"imported": form})
        cut = 0
        with open(file, "rb") as lines, _replacing(out) as place, progress("frames imported") as shown:
            with CassetteWriter(place, header, redactor) as writer:
                for frame in read(lines, source):
                    cut += not frame.whole
                    writer.write(frame)
                    shown.step()
            if not writer.frames:
                raise Unable(f"{file}: there is no traffic of the format {form!r} in it; choose another --format.")
    except importers.ImportFailed as error:
        raise Unable(str(error)) from None
    notes = [f"{number} line(s) skipped: {why}" for why, number in source.skipped.items()]
    notes += [f"{cut} payload(s) were cut for size and are marked"] if cut else []
    click.echo(f"{out}: {writer.frames} frames imported." + "".join(f"\n  {printable(note)}" for note in notes), err=True)


@contextmanager
def _replacing(path: str) -> Iterator[str]:
    """Give a place to write; what was written becomes `path` at the end, and is gone if anything fails."""
    if os.path.isdir(path):
        raise CassetteError(f"{path}: this is a folder; name a file to write.")
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise CassetteError(f"{path}: the folder to write to is not there; make it first.")
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        yield path
        return
    place = f"{path}.{os.getpid()}.partial"
    try:
        with named(place, path):
            yield place
            os.replace(place, path)
    except CassetteError as error:
        raise CassetteError(str(error).replace(place, path)) from None
    finally:
        if os.path.exists(place):
            os.unlink(place)
