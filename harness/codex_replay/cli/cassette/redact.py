"""`codex-replay cassette redact`: take the secrets out of a cassette."""

from __future__ import annotations

import os

import click

from codex_replay.cli.cassette.options import LITERAL, keep_what_is_there, redactor_of, replacing
from codex_replay.cli.io.console import Unable, progress, sentences
from codex_replay.core.cassette.frames import Header, encode_header, parse_line
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter


@click.command()
@click.argument("file")
@click.option("--out", metavar="G", help="The file to write.")
@click.option(
    "--in-place",
    is_flag=True,
    help="Replace FILE itself; this is allowed only if every frame is authored (written by a script or a person).",
)
@click.option("--force", is_flag=True, help="Replace G if it exists.")
@LITERAL
@sentences
def redact(file: str, out: str | None, in_place: bool, force: bool, literals: tuple[str, ...]) -> None:
    """Take the secrets out of a cassette: tokens, keys, JWTs, accounts, e-mails, home folders, and each --literal.

    A secret that is streamed in chunks is also removed: a placeholder replaces its first chunk. A recording is never
    changed in place: write the result to another file with --out.
    """
    if (out is None) == (not in_place):
        raise click.UsageError("Name the output: either --out FILE or --in-place.")
    from codex_replay.shell.cassettes.rewrite import WholeWriter

    redactor = redactor_of(literals)
    with CassetteReader(file) as reader:
        if in_place and set(reader.header.origin.values()) != {"authored"}:
            raise Unable(f"{file}: recorded frames must not be changed in place; write the result to another file with --out.")
        if out is not None and os.path.exists(out) and os.path.samefile(file, out):
            raise Unable(f"{out}: this is the input cassette itself; choose another file.")
        keep_what_is_there(out, force)
        header = parse_line(redactor.redact(encode_header(reader.header)))
        assert isinstance(header, Header)
        with replacing(out or file) as place, progress("frames redacted") as shown:
            writer = CassetteWriter(place, header)
            whole, changed = WholeWriter(writer, redactor), set()
            try:
                for frame in reader:
                    if whole.write(frame):
                        changed.add(whole.frames)
                    shown.step()
                if not reader.truncated:
                    writer.close()
            except BaseException:
                whole.abandon()
                raise
            writer.abandon()
            changed.update(whole.rewrite().frames)
        if reader.truncated:
            click.echo(f"codex-replay: {reader.truncated} The copy is incomplete, too.", err=True)
    click.echo(f"{out or file}: {len(changed)} of {writer.frames} frames redacted.", err=True)
