"""`codex-replay cassette redact`: take the secrets out of a cassette."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from harness.cli.cassette_options import LITERAL, redactor_of, replacing
from harness.cli.console import Unable, progress, sentences
from harness.core.frames import Frame, Header, encode_header, parse_line
from harness.shell.cassette import CassetteReader, CassetteWriter

if TYPE_CHECKING:
    from harness.core.redact import Redactor


@click.command()
@click.argument("file")
@click.option("--out", metavar="G", help="The file to write.")
@click.option("--in-place", is_flag=True, help="Replace FILE itself; only where every frame is authored.")
@click.option("--force", is_flag=True, help="Replace G if it is there.")
@LITERAL
@sentences
def redact(file: str, out: str | None, in_place: bool, force: bool, literals: tuple[str, ...]) -> None:
    """Take the secrets out of a cassette: tokens, keys, JWTs, accounts, e-mails, home folders, and each --literal.

    A secret that is streamed in pieces goes too: a placeholder stands where it begins. Everything else keeps its bytes. A
    recording is never changed itself: write another file with --out.
    """
    if (out is None) == (not in_place):
        raise click.UsageError("Say where to write: either --out G or --in-place.")
    from harness.core.streamed import with_piece

    redactor = redactor_of(literals)
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
        with replacing(out or file) as place, progress("frames redacted") as shown:
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
