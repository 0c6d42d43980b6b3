"""`codex-replay serve`: the fake Responses backend, for a client that you start yourself."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from harness.cli.console import Place, Unable
from harness.cli.stdout import at_once, gone
from harness.core.redact import Redactor
from harness.protocol.script import BadScript, parse
from harness.shell.backend_process import BackendError, BackendProcess, BackendSession

#: How long one question for news waits, in seconds; a signal interrupts it.
PATIENCE = 30.0


def load(path: Path) -> object:
    """Read a script from a JSON or YAML file; raises `Unable` with a sentence when it is not one."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Unable(f"The script {path} cannot be read ({error.strerror}); check the path.") from None
    except UnicodeDecodeError:
        raise Unable(f"The script {path} is not UTF-8, so it is no script; see docs/scripts.md.") from None
    value: object
    try:
        if path.suffix in (".yaml", ".yml"):
            import yaml

            try:
                value = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise ValueError(str(error).replace("\n", " ")) from error
        else:
            value = json.loads(text)
    except RecursionError:
        raise Unable(f"The script {path} is nested too deeply; see docs/scripts.md.") from None
    except ValueError as error:
        raise Unable(f"The script {path} is neither JSON nor YAML as its name says: {error}.") from None
    try:
        parse(value)
    except BadScript as error:
        raise Unable(f"{path}: {error}") from None
    return value


def _pace(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Refuse what is no pace; the backend would only when it has a recording."""
    found = re.fullmatch(r"fast|recorded|(\d+\.?\d*|\.\d+)x", value)
    if found is None or (found[1] and not 0 < float(found[1]) < 1e6):
        raise click.BadParameter(f"{value!r} is no pace: say fast, recorded, or Nx with a number N above 0, as 2x or 0.5x.")
    return value


def _of_recordings(ctx: click.Context, cassettes: object) -> None:
    """Refuse the options that say how recordings are played where there is none to play."""
    for param in ctx.command.params:
        said = param.name and ctx.get_parameter_source(param.name) is not ParameterSource.DEFAULT
        if said and param.name in ("by", "over", "pace", "allow_unused") and not cassettes:
            raise click.UsageError(f"{param.opts[0]} says how recordings are played; add --cassette, or leave it out.")


@click.command(name="serve")
@click.option("--script", type=Place(path_type=Path), help="What the model says, as JSON or YAML (see docs/scripts.md).")
@click.option(
    "--cassette",
    "cassettes",
    type=Place(path_type=Path),
    multiple=True,
    help="A recording, or a folder of them, to answer from before the script; see docs/replaying.md. May be repeated.",
)
@click.option(
    "--by",
    type=click.Choice(["content", "connection"]),
    default="content",
    show_default=True,
    help="How a recorded exchange is chosen.",
)
@click.option("--over", help="The parts of a request that are compared: method,path,body or body.KEY, headers.NAME, -body.KEY.")
@click.option(
    "--pace", metavar="P", default="fast", show_default=True, callback=_pace, help="fast, recorded, or Nx: N times as fast."
)
@click.option("--allow-unused", is_flag=True, help="Recorded requests that nobody asks are told, but are no failure.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="The port; 0 picks a free one.")
@click.option("--quiet", is_flag=True, help="Print the address only, and no line for each request.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for the address and for each request.")
@click.pass_context
def command(
    ctx: click.Context,
    script: Path | None,
    cassettes: tuple[Path, ...],
    by: str,
    over: str | None,
    pace: str,
    allow_unused: bool,
    host: str,
    port: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Serve the fake Responses backend until interrupted.

    Recordings answer first, then the script. Without either, every request gets a short reply that is always the same.

    Of each request a line is printed, without its tokens and other secrets: what is printed may go to a file.

    With recordings the exit status is 1 if a request was answered by none of them (501), or one of them was asked by nobody.
    """
    _of_recordings(ctx, cassettes)
    value = None if script is None else load(script)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with BackendProcess(host=host, port=port) as process:
            session = process.session("default", value)
            if cassettes:
                for note in session.cassette(cassettes, by=by, over=over.split(",") if over else None, pace=pace):
                    click.echo(note, err=True)
            with contextlib.suppress(KeyboardInterrupt):
                at_once(json.dumps({"url": process.url, "pid": process.pid}) if as_json else _welcome(process.url))
                _follow(process, session, quiet=quiet, as_json=as_json)
            if cassettes:
                raise SystemExit(_settle(session, allow_unused, as_json))
    except BackendError as error:
        raise Unable(str(error)) from None
    except KeyboardInterrupt:
        pass


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _welcome(url: str) -> str:
    return "\n".join(
        (
            f"Serving on {url}",
            f"  base URL                OPENAI_BASE_URL={url}/v1",
            f'  ChatGPT base URL        chatgpt_base_url = "{url}/backend-api/"',
            f"  token URL               CODEX_REFRESH_TOKEN_URL_OVERRIDE={url}/oauth/token",
            "Ctrl-C ends it.",
        )
    )


def _follow(process: BackendProcess, session: BackendSession, *, quiet: bool, as_json: bool) -> None:
    """Print a line for each request that is answered, until the backend ends, or nobody reads what is printed."""
    home = os.environ.get("HOME", "")
    redactor = Redactor(paths={home: "/home/user"} if home.strip("/") else {})
    seen = 0
    while not gone():
        for entry in session.ledger(seen + 1, PATIENCE, since=seen):
            if entry["end"] is None:
                break  # it is told when its answer has ended
            seen = entry["n"]
            if not quiet:
                text = _json(redactor, entry) if as_json else _line(entry)
                # People redirect it to files. The whole text and not its values: a body may hold NaN, and lone surrogates.
                at_once(redactor.text(text.encode("utf-8", "backslashreplace").decode()))


def _json(redactor: Redactor, entry: dict[str, Any]) -> str:
    headers = redactor.headers((name, value) for name, value in entry["headers"])  # by their names, whatever their values are
    return json.dumps({**entry, "headers": headers}, ensure_ascii=False)


def _settle(session: BackendSession, allow_unused: bool, as_json: bool) -> int:
    """Tell which requests no recording answered and which recorded ones nobody asked; return the exit status."""
    missed = [entry for entry in session.ledger() if entry["answer"] == "miss"]
    unused = session.unused_frames()
    if as_json:
        click.echo(json.dumps({"missed": [entry["n"] for entry in missed], "unused": unused}, ensure_ascii=False))
    else:
        for entry in missed:
            click.echo(f"missed: request {entry['n']}: {entry['sentence']}")
        for one in unused:
            click.echo(f"unused: frame {one['frame']} of {one['cassette']}, {one['request']}")
    return 1 if missed or (unused and not allow_unused) else 0


def _line(entry: dict[str, Any]) -> str:
    turn = "" if entry["turn"] is None else f" turns[{entry['turn']}]"
    if "recorded" in entry:
        turn = f" {entry['recorded']['cassette']} frame {entry['recorded']['frame']}"
    how = "" if entry["end"] == "end" else f" ({entry['end']})"
    why = "" if entry["sentence"] is None else f": {entry['sentence']}"
    return f"{entry['n']:4} {entry['method']} {entry['path']} -> {entry['status'] or '-'} {entry['answer']}{turn}{how}{why}"
