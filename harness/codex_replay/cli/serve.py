"""`codex-replay serve`: the fake Responses backend, for a client that you start yourself."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from codex_replay.cli.io.console import Place, Unable, aside
from codex_replay.cli.io.script_file import load_script
from codex_replay.cli.io.stdout import at_once, disconnected
from codex_replay.core.replay.pace import pace_of
from codex_replay.core.replay.ways import WAYS
from codex_replay.core.text.escape import escape, escape_json
from codex_replay.shell.http.backend_process import DEFAULT_SESSION, BackendError, BackendProcess, BackendSession
from codex_replay.shell.process.wakeful import answer_signals_at_once

if TYPE_CHECKING:
    from collections.abc import Iterator

#: How long after a signal stdout may block, in seconds.
READ_WITHIN = 5
#: How long one question for news waits, in seconds; a signal interrupts it.
PATIENCE = 30.0
#: How long a failed question is followed by none, in seconds.
PAUSE = 1.0


def _pace(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Refuse an invalid value of `--pace`: the backend itself checks the pace only if there is a recording."""
    if pace_of(value) is None:
        raise click.BadParameter(
            f"{value!r} is not a pace. Use fast, recorded, or Nx with a number N above 0, such as 2x or 0.5x."
        )
    return value


def _of_recordings(ctx: click.Context, cassettes: object) -> None:
    """Refuse options that are only for recordings if there is no recording."""
    for param in ctx.command.params:
        given = param.name and ctx.get_parameter_source(param.name) is not ParameterSource.DEFAULT
        if given and param.name in ("by", "over", "pace", "allow_unused") and not cassettes:
            raise click.UsageError(f"{param.opts[0]} has an effect only with recordings; add --cassette, or remove the option.")


@click.command(name="serve")
@click.option("--script", type=Place(path_type=Path), help="The script of the model, JSON or YAML (docs/scripts.md).")
@click.option(
    "--cassette",
    "cassettes",
    type=Place(path_type=Path),
    multiple=True,
    help="Answer from this recording, or from this folder of recordings, before the script is used (docs/replaying.md). "
    "Repeatable.",
)
@click.option(
    "--by",
    type=click.Choice(WAYS),
    default="content",
    show_default=True,
    help="How the backend chooses a recorded exchange for a request.",
)
@click.option("--over", help="The parts of a request to compare: method,path,body or body.KEY, headers.NAME, -body.KEY.")
@click.option(
    "--pace",
    metavar="P",
    default="fast",
    show_default=True,
    callback=_pace,
    help="The speed of replies: fast, recorded, or Nx (N times as fast as recorded).",
)
@click.option(
    "--allow-unused",
    is_flag=True,
    help="Only report recorded requests that no client sent, without an effect on the exit status.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="The port; 0 picks a free one.")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="Also accept requests with this host name. Repeatable."
)
@click.option(
    "--max-body",
    type=click.IntRange(1),
    metavar="BYTES",
    help="The maximum size of a request body, before and after decoding (default: 64 MB).",
)
@click.option(
    "--ledger-requests",
    type=click.IntRange(1),
    metavar="N",
    help="The maximum number of requests in the ledger, the backend's list of requests (default: 10000).",
)
@click.option(
    "--ledger-bytes",
    type=click.IntRange(1),
    metavar="BYTES",
    help="The maximum size of the ledger, the backend's list of requests, in bytes (default: 64 MB).",
)
@click.option(
    "--idle-seconds",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    help="Seconds until an idle connection is closed (default: 120).",
)
@click.option("--quiet", is_flag=True, help="Print only the address, and no lines for requests.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for the address and for each request.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    script: Path | None,
    cassettes: tuple[Path, ...],
    by: str,
    over: str | None,
    pace: str,
    allow_unused: bool,
    host: str,
    port: int,
    hosts: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    **limits: float | None,
) -> None:
    """Run the fake Responses backend until this command is interrupted.

    Each request is answered from the recordings if a recorded request matches, otherwise from the script. If there is neither a
    recording nor a script, every request gets the same short reply.

    Each request is printed as one line, without tokens and other secrets.

    A request is refused if its header Host does not name this machine, or if a web page of another origin sends it; see
    docs/security.md.

    With recordings, the exit status is 1 if a request had no recorded answer (501) or a recorded request was never sent.
    """
    _of_recordings(ctx, cassettes)
    value = None if script is None else load_script(script)
    options = [f"--{name.replace('_', '-')}={limit}" for name, limit in limits.items() if limit is not None]
    options += [f"--allow-host={name}" for name in hosts]
    answer_signals_at_once()
    stop = _Stop()
    stop.install()
    try:
        with BackendProcess(host=host, port=port, options=options) as process:
            session = _session(process, script, value)
            if cassettes:
                for note in session.cassette(cassettes, by=by, over=over.split(",") if over else None, pace=pace):
                    click.echo(_Printer().line(note), err=True)
            with contextlib.suppress(KeyboardInterrupt):
                ready = {"url": process.url, "pid": process.pid, "token": process.token}
                address = json.dumps(ready) if as_json else welcome(process.url, process.token)
                _Followed(process, session, stop, quiet=quiet, as_json=as_json).follow(address)
            if cassettes:
                raise SystemExit(_settle(session, allow_unused, as_json))
    except BackendError as error:
        raise Unable(str(error)) from None
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _session(process: BackendProcess, path: Path | None, script: object) -> BackendSession:
    """Start the default session of the fake backend.

    If the backend refuses the script, the error message names the file of the script.
    """
    if path is None:
        return process.session(DEFAULT_SESSION, script)
    session = process.session(DEFAULT_SESSION)
    try:
        session.script(script)
    except BackendError as error:
        raise Unable(f"{path}: {error}") from None
    return session


class _Stop:
    """A signal handler: SIGINT or SIGTERM ends the command, but only between two printed lines.

    A second signal ends the command even while a line is printed, because the write to stdout may block. If stdout still
    blocks `READ_WITHIN` seconds after the first signal, the remaining lines are dropped.
    """

    def __init__(self) -> None:
        self._prints = self._came = False

    def install(self) -> None:
        """Install the handlers of SIGINT and SIGTERM.

        SIGINT stays ignored if it is already ignored, as in a background job of a shell.
        """
        signal.signal(signal.SIGTERM, self)
        signal.signal(signal.SIGALRM, self._drop)
        if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
            signal.signal(signal.SIGINT, self)

    def __call__(self, number: int, frame: object) -> None:
        """Raise `KeyboardInterrupt` now; if a line is being printed, raise it after the line."""
        signal.setitimer(signal.ITIMER_REAL, READ_WITHIN)
        if not self._prints or self._came:
            raise KeyboardInterrupt
        self._came = True

    @staticmethod
    def _drop(number: int, frame: object) -> None:
        """Drop all further output on stdout, so that a blocked write ends."""
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        aside("serve ends, but nobody reads stdout: the remaining lines are not printed.")

    @contextlib.contextmanager
    def printing(self) -> Iterator[None]:
        """Print the lines for the remaining requests in the ledger, each exactly once."""
        self._prints = True
        try:
            yield
        finally:
            self._prints = False
        if self._came:
            self._came = False
            raise KeyboardInterrupt


def welcome(url: str, token: str) -> str:
    """Return instructions for the user: how to set the URL of the backend, `url`, in a client.

    Codex 0.92 reads OPENAI_BASE_URL; later versions ignore OPENAI_BASE_URL, and would send requests to the real service. A
    model provider in config.toml works for all Codex versions.
    """
    provider = f'model_providers.mine={{name="mine",base_url="{url}/v1",wire_api="responses"}}'
    return "\n".join(
        (
            f"Serving on {url}",
            f"  base URL                OPENAI_BASE_URL={url}/v1 (newer versions of Codex ignore it)",
            f"  Codex, any version      codex -c model_provider=mine -c '{provider}'",
            f'  ChatGPT base URL        chatgpt_base_url = "{url}/backend-api/"',
            f"  token URL               CODEX_REFRESH_TOKEN_URL_OVERRIDE={url}/oauth/token",
            f"  control API             {url}/_codex_replay/ with the header x-codex-replay-token: {token}",
            "Ctrl-C ends it.",
        )
    )


class _Printer:
    """Print the output of `codex-replay serve`.

    Secrets and control characters are removed from the output, because users redirect it to files.
    """

    def __init__(self) -> None:
        from codex_replay.core.redact.redactor import Redactor  # its patterns load while the backend already answers

        home = os.environ.get("HOME", "")
        self._redactor = Redactor(paths={home: "/home/user"} if home.strip("/") else {})

    def line(self, text: str) -> str:
        """Return a sentence for people."""
        return escape(self._redacted(text))

    def json(self, value: object) -> str:
        """Return a value as one line of JSON.

        The line is redacted as a whole, because a body may contain lone surrogates.
        """
        return escape_json(self._redacted(json.dumps(value, ensure_ascii=False)))

    def entry(self, entry: dict[str, Any]) -> str:
        """Return an entry of the ledger as JSON."""
        headers = self._redactor.headers((name, value) for name, value in entry["headers"])  # by name, whatever their values are
        return self.json({**entry, "headers": headers})

    def _redacted(self, text: str) -> str:
        return self._redactor.text(text.encode("utf-8", "backslashreplace").decode())


class _Followed:
    """Prints the requests to a running backend: one line for each answered request, and one line for each problem that the
    backend reports.
    """

    def __init__(self, process: BackendProcess, session: BackendSession, stop: _Stop, *, quiet: bool, as_json: bool) -> None:
        self._process, self._session, self._stop = process, session, stop
        self._quiet, self._as_json = quiet, as_json
        self._seen = self._dropped = 0
        self._complaints = ""

    @cached_property
    def _printer(self) -> _Printer:
        return _Printer()

    def follow(self, address: str) -> None:
        """Print the address, and then the requests until the backend ends or stdout is closed.

        Raises `BackendError` if the backend has ended.
        """
        try:
            with self._stop.printing():
                at_once(address)
                _ = self._printer  # a client may send requests from now on: a signal must not lose them
            while not disconnected():
                self._poll(PATIENCE)
        except KeyboardInterrupt:
            while self._poll(0):
                pass
            raise

    def _poll(self, seconds: float) -> bool:
        """Print the requests whose answers have ended; return True if at least one was printed."""
        try:
            entries = self._session.ended(self._seen, seconds)
        except BackendError as error:
            if not self._process.running():
                raise
            aside(self._printer.line(f"{error} The server continues."))
            time.sleep(min(seconds, PAUSE))
            return False
        with self._stop.printing():
            self._show(entries)
            self._complain()
        return bool(entries)

    def _complain(self) -> None:
        complaints = self._process.stderr()
        for line in complaints.removeprefix(self._complaints).splitlines():
            aside(self._printer.line(line))
        self._complaints = complaints

    def _show(self, entries: list[dict[str, Any]]) -> None:
        if self._session.dropped > max(self._dropped, self._seen):
            self._dropped = self._session.dropped
            aside(
                f"The requests {self._seen + 1} to {self._dropped} were not printed, because the full ledger dropped them "
                "earlier."
            )
        for entry in entries:
            self._seen = entry["n"]
            if not self._quiet:
                at_once(self._printer.entry(entry) if self._as_json else self._printer.line(_line(entry)))


def _settle(session: BackendSession, allow_unused: bool, as_json: bool) -> int:
    """Print the requests without a recorded answer, and the recorded requests that no client sent; return the exit status."""
    missed = [entry for entry in session.ledger(redact=True) if entry["answer"] == "miss"]
    unused = session.unused_frames()
    printer = _Printer()
    if as_json:
        click.echo(printer.json({"missed": [entry["n"] for entry in missed], "unused": unused}))
    else:
        for entry in missed:
            click.echo(printer.line(f"missed: request {entry['n']}: {entry['sentence']}"))
        for one in unused:
            click.echo(printer.line(f"unused: frame {one['frame']} of {one['cassette']}, {one['request']}"))
    return 1 if missed or (unused and not allow_unused) else 0


def _line(entry: dict[str, Any]) -> str:
    turn = "" if entry["turn"] is None else f" turns[{entry['turn']}]"
    if "recorded" in entry:
        turn = f" {entry['recorded']['cassette']} frame {entry['recorded']['frame']}"
        turn += " (converted)" if entry["recorded"].get("converted") else ""
    how = "" if entry["end"] == "end" else f" ({entry['end']})"
    why = "" if entry["sentence"] is None else f": {entry['sentence']}"
    return f"{entry['n']:4} {entry['method']} {entry['path']} -> {entry['status'] or '-'} {entry['answer']}{turn}{how}{why}"
