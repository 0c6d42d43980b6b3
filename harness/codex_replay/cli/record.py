"""`codex-replay record`: run an app-server and record its traffic; clients use this command as their codex command."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import click
from click.core import ParameterSource

from codex_replay.cli.io.literals import LITERAL, BadLiteral, from_environment, named, redactor_with, without
from codex_replay.core.cassette.frames import Header
from codex_replay.core.text.error_text import error_text
from codex_replay.shell.cassettes.claim import claim
from codex_replay.shell.cassettes.file import CassetteError, CassetteWriter
from codex_replay.shell.cassettes.record_log import Log
from codex_replay.shell.codex.origin import bundle_of, is_fake, version_of
from codex_replay.shell.process import impersonate
from codex_replay.shell.rpc import recorder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codex_replay.cli.record_model import Scripted
    from codex_replay.core.redact.redactor import Redactor
    from codex_replay.shell.cassettes.rewrite import WholeWriter
    from codex_replay.shell.http.recorder import HttpRecorder

UNKNOWN = "unknown"
MAX_BODY = 16 << 20  # as `shell.http.bodies`, which is imported for the http seam alone
SEAMS = ("rpc", "rpc.client", "rpc.server", "http", "http.client", "http.server")


def write_out(text: str) -> None:
    """Write one sentence to stderr without buffering, because the recorded server writes to the same stderr."""
    from codex_replay.core.redact.sentence import sentence

    os.write(2, f"codex-replay record: {sentence(text)}\n".encode("utf-8", "surrogateescape"))


class Options(NamedTuple):
    """The parsed command line."""

    out: str
    case: str | None
    codex: str | None
    force: bool
    upstream: str | None
    listen: str
    origin: dict[str, str]
    command: tuple[str, ...]
    literals: Mapping[str, str]
    hosts: tuple[str, ...] = ()
    max_body: int = MAX_BODY
    model: Scripted | None = None

    @property
    def unstarted(self) -> str:
        """Return the last sentence of an error message, which states that CMD was not started."""
        return f"{self.command[0]} was not started." if self.command else "Nothing was started."

    def write_out(self, text: str) -> None:
        """Write one sentence to stderr, without the user's own secrets."""
        write_out(without(text, self.literals) if self.literals else text)

    def stop(self, status: int, text: str) -> NoReturn:
        """Print the error `text` and exit with `status`."""
        self.write_out(text)
        sys.exit(status)


def case_of(out: str) -> str:
    """Return the default case name of a recording to the file `out`: the file name without a number or process id."""
    return os.path.splitext(os.path.basename(out))[0].replace("{pid}", "").strip("-_.") or "recorded"


def redactor_for(directory: str, literals: Mapping[str, str] | None = None, places: Mapping[str, str] | None = None) -> Redactor:
    """Return the redactor for a recording.

    The redactor replaces secrets of all kinds, the user's own secrets, the user's home folder, and `directory`, the working
    directory of the command.

    `places` has more paths, each with its replacement.

    Raises ValueError if a directory cannot be replaced, and `BadLiteral` if one of the `literals` cannot be redacted.
    """
    home = os.path.expanduser("~").rstrip("/")
    paths = {home: "/home/user"} if home.startswith("/") else {}
    if directory != "/" and not (home and f"{directory}/".startswith(f"{home}/")):
        paths[directory] = "/home/user/work"
    return redactor_with(literals or {}, {**paths, **(places or {})})


def header_for(options: Options, redactor: Redactor) -> Header:
    """Return the header of the cassette; two recordings of the same conversation get equal headers."""
    version = options.codex or version_of(options.command) or UNKNOWN
    argv = [os.fsencode(word).decode("utf-8", "replace") for word in redactor.argv(options.command)]
    origin = {"rpc": "recorded"} if options.command else {}
    if is_fake(options.command):
        origin["rpc.server"] = "authored"  # a script or a cassette gave fake-codex its frames
    if options.upstream is not None:
        origin |= {"http.client": "recorded", "http.server": "recorded"}
    case = redactor.text(options.case or case_of(options.out))
    extra = {"command": argv} if argv else {}
    if options.model is not None:
        origin["http.server"] = "authored"
        extra = json.loads(redactor.text(json.dumps(options.model.header())))
    return Header(redactor.text(version), bundle_of(version), case, origin | options.origin, extra)


def open_cassette(options: Options, redactor: Redactor) -> WholeWriter:
    """Create the cassette file, write its header, and return the open file; on an error, print a message and exit."""
    from codex_replay.shell.cassettes.rewrite import HEADER_ROOM, WholeWriter

    try:
        header = header_for(options, redactor)
    except Exception as error:  # whatever the reason: what cannot be redacted must not be written
        options.stop(2, f"the command cannot be redacted ({error}), so nothing can be recorded; {options.unstarted}")
    # In sentences the whole path: the working directory is the client's, and not the user's.
    out = os.path.abspath(options.out)
    try:
        path = claim(out, options.force)
    except OSError as error:
        if error.errno == errno.EBUSY:
            options.stop(2, f"{out}: {error.strerror}. {options.unstarted}")
        options.stop(2, f"{out}: the cassette cannot be written ({error.strerror}); choose another place. {options.unstarted}")
    if path != out.replace("{pid}", str(os.getpid())):
        options.write_out(f"{out} already exists and was not changed; this run is recorded to {path}.")
    try:
        if header.codex == UNKNOWN:
            return WholeWriter(CassetteWriter(path, header, room=HEADER_ROOM), redactor, header)
        return WholeWriter(CassetteWriter(path, header), redactor)
    except CassetteError as error:
        options.stop(2, f"{error} {options.unstarted}")


def give_back(writer: WholeWriter) -> None:
    """Remove the cassette if nothing was recorded."""
    writer.abandon()
    if os.path.isfile(writer.path):  # and not a device
        os.unlink(writer.path)


def open_http(options: Options, writer: WholeWriter, log: Log, redactor: Redactor) -> HttpRecorder | None:
    """If the options request a recorder for HTTP traffic, start and return the recorder.

    On failure, end the program with a message.
    """
    if options.upstream is None:
        return None
    from codex_replay.shell.http.recorder import HttpRecorder

    try:
        return HttpRecorder(options.upstream, options.listen, log, redactor, options.write_out, options.hosts, options.max_body)
    except ValueError as error:
        give_back(writer)
        options.stop(2, f"{error}. {options.unstarted}")
    except OSError as error:
        give_back(writer)
        options.stop(2, f"{options.listen}: cannot listen there ({error.strerror}); choose another address. {options.unstarted}")


def serve(http: HttpRecorder) -> None:
    """Record only HTTP traffic, until a signal ends the command; print the address on stdout like the fake backend."""
    sys.stdout.write(json.dumps({"url": http.url, "pid": os.getpid()}) + "\n")
    sys.stdout.flush()
    http.run()


def tee(options: Options, writer: WholeWriter, log: Log, http: HttpRecorder | None) -> int:
    """Run CMD and record its JSON-RPC traffic; also record its HTTP traffic if the user gave --upstream or --model.

    Return the exit status of CMD.
    """
    env = impersonate.original_environment() or dict(os.environb)
    command = list(options.command)
    if http is not None:
        command = [word.replace("{listen}", http.url) for word in command]
        env = {name: value.replace(b"{listen}", http.url.encode()) for name, value in env.items()}
        if options.model is not None:
            command, env = list(options.model.argv), options.model.environment(http.url)
    try:
        rpc = recorder.Recorder(command, log, env)
    except (OSError, ValueError) as error:  # ValueError: a word with a null character
        give_back(writer)
        missing = isinstance(error, FileNotFoundError)
        why = getattr(error, "strerror", None) or str(error)
        options.stop(
            127 if missing else 126, f"{command[0] or 'an empty word'}: cannot be started ({why}); check the command after `--`."
        )
    if http is not None:
        http.start()
    status = rpc.run()
    if http is not None:
        http.stop()
    return status


def finish(options: Options, writer: WholeWriter, log: Log) -> bool:
    """Finish the recorded cassette: remove secrets that were streamed in chunks, and report the number of removed secrets.

    Return False if the cassette still contains a secret.
    """
    from codex_replay.shell.cassettes.rewrite import secrets_text

    log.close()
    try:
        rewritten = writer.rewrite()
    except CassetteError as error:
        options.write_out(str(error))
        return False
    except Exception as error:  # the status of what was recorded must reach the client, whatever happens here
        literal = " --literal TEXT" if options.literals else ""
        options.write_out(
            f"{writer.path}: the search for secrets that were streamed in chunks failed ({error!r}). Run `codex-replay "
            f"cassette redact {writer.path}{literal} --out FILE`, and keep only that FILE."
        )
        return False
    if rewritten.secrets:
        options.write_out(
            f"{writer.path}: the client received {secrets_text(rewritten.secrets)}. The cassette contains placeholders instead."
        )
    return True


def origins(pairs: Sequence[str]) -> dict[str, str]:
    """Parse the values of `--origin SEAM=ORIGIN`; an invalid value is a usage error."""
    origin = dict(pair.partition("=")[::2] for pair in pairs)
    for seam, kind in origin.items():
        if seam not in SEAMS or kind not in ("recorded", "authored"):
            raise click.UsageError(f"--origin {seam}={kind}: write one of {', '.join(SEAMS)}, and then =recorded or =authored.")
    return origin


def environment(literals: Mapping[str, str]) -> dict[str, str]:
    """Return the user's own secrets, and the secrets in the environment of CMD, for the redactor."""
    environ = impersonate.original_environment() or dict(os.environb)
    return from_environment({os.fsdecode(name): os.fsdecode(value) for name, value in environ.items()}, literals)


@click.command(
    name="record",
    context_settings={"help_option_names": ["-h", "--help"], "allow_interspersed_args": False},
    options_metavar="--out F [--upstream URL] [OPTIONS] --",
)
@click.option("--out", required=True, metavar="F", help="The cassette to write; {pid} is replaced by the process id.")
@click.option(
    "--case", metavar="NAME", help="The name of the case in the cassette's header (default: the file name without its extension)."
)
@click.option(
    "--codex",
    metavar="VERSION",
    help="The Codex version in the cassette's header (default: found next to CMD or in the traffic).",
)
@click.option("--force", is_flag=True, help="Replace F if it exists (default: write to F.2, F.3, ...).")
@click.option("--upstream", metavar="URL", help="Also record HTTP traffic: forward the requests to this base URL.")
@click.option(
    "--model", metavar="SCRIPT", help="Record the installed codex@VERSION with a scripted model, in a temporary home folder."
)
@click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    metavar="HOST:PORT",
    help="The address at which requests for --upstream arrive.",
)
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="Also accept requests with this host name. Repeatable."
)
@click.option(
    "--max-body",
    default=MAX_BODY,
    show_default=True,
    type=click.IntRange(1),
    metavar="BYTES",
    help="Leave out bodies with more than this number of decoded bytes.",
)
@click.option(
    "--origin",
    multiple=True,
    metavar="SEAM=ORIGIN",
    help="Mark frames as authored (not from a real program), such as http.server=authored.",
)
@LITERAL
@click.option("--env-secrets", is_flag=True, help="Also redact the values of environment variables that look like secrets.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="CMD [ARGS]...")
@click.pass_context
def command(
    ctx: click.Context,
    out: str,
    case: str | None,
    codex: str | None,
    force: bool,
    upstream: str | None,
    model: str | None,
    listen: str,
    hosts: tuple[str, ...],
    max_body: int,
    origin: tuple[str, ...],
    literals: tuple[str, ...],
    env_secrets: bool,
    command: tuple[str, ...],
) -> None:
    """Run CMD and write the traffic between CMD and its client to the cassette F.

    To record a client, enter `codex-replay record ... -- CMD` as the codex command in the settings of the client. The
    recorder passes bytes, end of file, signals and the exit status on unchanged. The recorder redacts each line (secrets,
    and the TEXT of each --literal) and writes it to F before it passes the original line on.

    With --upstream, the recorder also passes on and records the HTTP requests that arrive at --listen. In the arguments and
    the environment of CMD, {listen} is replaced by the URL of --listen. Without CMD, only the HTTP requests at --listen are
    recorded, until a signal ends the command; the URL is printed on stdout.

    With --model, CMD is codex@VERSION and its arguments (default: app-server), and both the JSON-RPC and the HTTP traffic
    of the real Codex are recorded.
    """
    with contextlib.ExitStack() as stack:
        scripted = None
        if model is not None:
            from codex_replay.cli.record_model import CODEX

            if upstream is not None or not command or not command[0].startswith(CODEX):
                raise click.UsageError("--model SCRIPT needs CMD codex@VERSION, and no --upstream.")
            scripted = stack.enter_context(_scripted(model, command))
            upstream, codex, command = scripted.upstream, codex or scripted.version, ("codex", *scripted.argv[1:])
        rest = (listen, origins(origin), command)
        status = _record(
            ctx, Options(out, case, codex, force, upstream, *rest, named(literals), hosts, max_body, scripted), env_secrets
        )
    impersonate.leave_as(status)


@contextlib.contextmanager
def _scripted(model: str, command: tuple[str, ...]) -> Iterator[Scripted]:
    from codex_replay.cli.record_model import CannotRecord, scripted

    try:
        with scripted(model, command) as found:
            yield found
    except CannotRecord as error:
        write_out(f"{error}. Codex was not started.")
        sys.exit(2)


def _record(ctx: click.Context, options: Options, env_secrets: bool) -> int:
    """Record according to the options; return the exit status of the command."""
    upstream, command, literals = options.upstream, options.command, options.literals
    if not command and upstream is None:
        raise click.UsageError("Missing CMD (after `--`), or --upstream URL.")
    if upstream is None and ctx.get_parameter_source("listen") is not ParameterSource.DEFAULT:
        raise click.UsageError("--listen receives requests for --upstream: add --upstream URL, or remove --listen.")
    texts = environment(literals) if env_secrets else literals
    options = options._replace(literals=texts)
    for seam in options.origin:
        if not (upstream if seam.startswith("http") else command):
            missing = "--upstream URL" if seam.startswith("http") else "CMD"
            raise click.UsageError(
                f"--origin {seam}: this traffic is recorded only with {missing}; add that option, or remove --origin."
            )
    impersonate.open_standard_descriptors()
    try:
        redactor = redactor_for(os.getcwd(), options.literals, options.model.paths if options.model is not None else None)
    except BadLiteral as error:
        options.stop(2, f"--literal: {error}. {options.unstarted}")
    except (ValueError, OSError) as error:
        options.stop(
            2, f"this directory cannot be redacted ({error_text(error)}), so nothing can be recorded; {options.unstarted}"
        )
    if env_secrets and len(texts) == len(literals):
        options.write_out("--env-secrets: no environment variable has a value that looks like a secret.")
    writer = open_cassette(options, redactor)
    log = Log(writer, options.write_out)
    http = open_http(options, writer, log, redactor)
    if http is not None and not command:
        serve(http)
        sys.exit(0 if finish(options, writer, log) else 1)
    status = tee(options, writer, log, http)
    finish(options, writer, log)
    for problem in options.model.problems() if options.model is not None else ():
        options.write_out(problem)
    return status
