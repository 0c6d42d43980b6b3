"""`codex-replay cassette import`: make a cassette from another tool's recording."""

from __future__ import annotations

import os

import click

from codex_replay.cli.cassette.options import LITERAL, keep_what_is_there, redactor_of, replacing
from codex_replay.cli.io.console import Unable, progress, sentences
from codex_replay.core.cassette.frames import Header
from codex_replay.core.text.escape import escape
from codex_replay.shell.cassettes.file import CassetteWriter


@click.command("import")
@click.argument("file")
@click.option("--format", "form", type=click.Choice(["tee", "proto-events"]), required=True, help="The format of FILE.")
@click.option("--out", required=True, metavar="F", help="The cassette to write.")
@click.option("--force", is_flag=True, help="Replace F if it exists.")
@click.option("--codex", metavar="VERSION", help="The recorded Codex version (default: the version in the recorded userAgent).")
@click.option("--case", metavar="NAME", help="The name of the case (default: the name of FILE).")
@click.option("--authored", is_flag=True, help="Declare that a person or a script wrote FILE, and no real program.")
@LITERAL
@sentences
def import_(
    file: str, form: str, out: str, force: bool, codex: str | None, case: str | None, authored: bool, literals: tuple[str, ...]
) -> None:
    """Make a cassette from the recording of another tool: the log of a tee, or the proto-events of a proxy.

    Secrets are removed, including secrets that were streamed in chunks. A payload that the other tool truncated is marked, and
    never treated as complete.
    """
    from codex_replay.protocol.recordings.codex_version import codex_version
    from codex_replay.shell.cassettes import importers
    from codex_replay.shell.cassettes.rewrite import WholeWriter
    from codex_replay.shell.codex.origin import bundle_of

    read = importers.READERS[form]
    source = importers.Source(file)
    try:
        if os.path.exists(out) and os.path.samefile(file, out):
            raise Unable(f"{out}: this is the file to import; choose another file.")
        keep_what_is_there(out, force)
        with open(file, "rb") as lines:
            version = codex or next(filter(None, map(codex_version, read(lines, importers.Source(file)))), "unknown")
        redactor = redactor_of(literals)
        name = redactor.text(case or os.path.splitext(os.path.basename(file))[0])
        origin = {"rpc": "authored" if authored else "recorded"}
        header = Header(version, bundle_of(version), name, origin, {"imported": form})
        cut = 0
        with open(file, "rb") as lines, replacing(out) as place, progress("frames imported") as shown:
            with CassetteWriter(place, header) as writer:
                whole = WholeWriter(writer, redactor)
                for frame in read(lines, source):
                    cut += not frame.whole
                    whole.write(frame)
                    shown.step()
            whole.rewrite()
            if not writer.frames:
                raise Unable(f"{file} has no traffic in the format {form!r}; choose another --format.")
    except importers.ImportFailed as error:
        raise Unable(str(error)) from None
    notes = [f"{number} line(s) skipped: {why}" for why, number in source.skipped.items()]
    notes += [f"{cut} payload(s) were cut for size and are marked"] if cut else []
    click.echo(f"{out}: {writer.frames} frames imported." + "".join(f"\n  {escape(note)}" for note in notes), err=True)
