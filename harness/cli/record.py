"""`codex-replay record`: a transparent tee in front of an app-server, usable as any client's codex command."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from harness.core.frames import Header
from harness.shell import recorder, stand_in
from harness.shell.cassette import CassetteError, CassetteWriter
from harness.shell.codex_origin import bundle_of, version_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.core.redact import Redactor


def say(sentence: str) -> None:
    """Write one sentence to stderr at once, past Python's buffers: stderr is the server's, and shared with it."""
    os.write(2, f"codex-replay record: {sentence}\n".encode())


def claim(out: str, force: bool) -> str:
    """Return the file to record to, created empty: `out` with `{pid}` filled in, or numbered (run.2.ndjson) if it is there.

    With `force` a file that is there is replaced. A device or a named pipe is taken as it is. Raises OSError.
    """
    path = out.replace("{pid}", str(os.getpid()))
    stem, suffix = os.path.splitext(path)
    number = 1
    while True:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
            return path
        except FileExistsError:
            # What is there and is no file (/dev/null, a named pipe) holds no recording; a directory will say so itself.
            if not stat.S_ISREG(os.lstat(path).st_mode) and not os.path.isfile(path):
                return path
        if force:
            os.unlink(path)
            continue
        number += 1
        path = f"{stem}.{number}{suffix}"


def case_of(out: str) -> str:
    """Return the name that a recording to `out` has unless told otherwise: the file's, without number or process id."""
    return os.path.splitext(os.path.basename(out))[0].replace("{pid}", "").strip("-_.") or "recorded"


def redactor_for(directory: str) -> Redactor:
    """Return the redactor of a recording: secrets of every kind, the user's home, and `directory`, the command's own.

    Raises ValueError when one of the two cannot be replaced.
    """
    from harness.core.redact import Redactor

    home = os.path.expanduser("~").rstrip("/")
    paths = {home: "/home/user"} if home.startswith("/") else {}
    if directory != "/" and not (home and f"{directory}/".startswith(f"{home}/")):
        paths[directory] = "/home/user/project"
    return Redactor(paths=paths)


def header_for(command: Sequence[str], codex: str | None, case: str, redactor: Redactor) -> Header:
    """Return the header: nothing in it changes from one recording of the same thing to the next."""
    version = codex or version_of(command) or "unknown"
    argv = [os.fsencode(word).decode("utf-8", "replace") for word in redactor.argv(command)]
    return Header(version, bundle_of(version), case, {"rpc": "recorded"}, {"command": argv})


def stop(status: int, sentence: str) -> NoReturn:
    """Say what is wrong and exit."""
    say(sentence)
    sys.exit(status)


def open_cassette(out: str, force: bool, command: Sequence[str], codex: str | None, case: str | None) -> CassetteWriter:
    """Return the cassette to record to, its header written; ends the program with a sentence if there can be none."""
    unstarted = f"{command[0]} was not started."
    try:
        redactor = redactor_for(os.getcwd())
        header = header_for(command, codex, case or case_of(out), redactor)
    except Exception as error:  # whatever the reason: what cannot be redacted must not be written
        stop(2, f"the command cannot be redacted ({error}), so nothing can be recorded; {unstarted}")
    try:
        path = claim(out, force)
    except OSError as error:
        stop(2, f"{out}: the cassette cannot be written ({error.strerror}); choose another place. {unstarted}")
    if path != out.replace("{pid}", str(os.getpid())):
        say(f"{out} is there already and is kept; this run is recorded to {path}.")
    try:
        return CassetteWriter(path, header, redactor)
    except CassetteError as error:
        stop(2, f"{error} {unstarted}")


@click.command(
    name="record",
    context_settings={"help_option_names": ["-h", "--help"], "allow_interspersed_args": False},
    options_metavar="--out F [OPTIONS] --",
)
@click.option("--out", required=True, metavar="F", help="The cassette to write; {pid} in it becomes the process id.")
@click.option("--case", metavar="NAME", help="The case's name in the header (default: the file's name).")
@click.option("--codex", metavar="VERSION", help="The Codex version in the header (default: found beside CMD, or `unknown`).")
@click.option("--force", is_flag=True, help="Replace F if it is there; otherwise F.2, F.3, ... is written.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="CMD [ARGS]...")
def command(out: str, case: str | None, codex: str | None, force: bool, command: tuple[str, ...]) -> None:
    """Run CMD behind a transparent tee and write what it and its client say to the cassette F.

    Give it to a client in the place of its codex command: bytes, end of file, signals and exit status pass unchanged, and
    each line is on disk, without its secrets, before it goes on.
    """
    stand_in.open_standard_descriptors()
    writer = open_cassette(out, force, command, codex, case)
    try:
        tee = recorder.Recorder(command, recorder.Log(writer, say), stand_in.original_environment())
    except (OSError, ValueError) as error:  # ValueError: an empty word, or one with a null character
        writer.abandon()
        if os.path.isfile(writer.path):  # and not a device
            os.unlink(writer.path)
        missing = isinstance(error, FileNotFoundError)
        reason = getattr(error, "strerror", None) or str(error)
        stop(127 if missing else 126, f"{command[0]}: cannot be started ({reason}); check the command after `--`.")
    stand_in.leave_as(tee.run())
