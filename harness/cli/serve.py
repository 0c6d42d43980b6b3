"""`codex-replay serve`: the fake Responses backend, for a client that you start yourself."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import click

from harness.protocol.script import BadScript, parse
from harness.shell.backend_process import BackendError, BackendProcess, BackendSession

#: How long one question for news waits, in seconds; a signal interrupts it.
PATIENCE = 30.0


def load(path: Path) -> object:
    """Read a script from a JSON or YAML file; raises `click.ClickException` with a sentence when it is not one."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"The script {path} cannot be read: {error}.") from None
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
    except ValueError as error:
        raise click.ClickException(f"The script {path} is neither JSON nor YAML as its name says: {error}.") from None
    try:
        parse(value)
    except BadScript as error:
        raise click.ClickException(f"{path}: {error}") from None
    return value


@click.command(name="serve")
@click.option("--script", type=click.Path(path_type=Path), help="What the model says, as JSON or YAML (see docs/scripts.md).")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="The port; 0 picks a free one.")
@click.option("--quiet", is_flag=True, help="Print the address only, and no line for each request.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for the address and for each request.")
def command(script: Path | None, host: str, port: int, quiet: bool, as_json: bool) -> None:
    """Serve the fake Responses backend until interrupted.

    Without a script every request gets a short reply that is always the same.
    """
    value = None if script is None else load(script)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with BackendProcess(host=host, port=port) as process:
            session = process.session("default", value)
            click.echo(json.dumps({"url": process.url, "pid": process.pid}) if as_json else _welcome(process.url))
            _follow(process, session, quiet=quiet, as_json=as_json)
    except BackendError as error:
        raise click.ClickException(str(error)) from None
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
    """Print a line for each request that is answered, until the backend ends."""
    seen = 0
    while True:
        for entry in session.ledger(seen + 1, PATIENCE, since=seen):
            if entry["end"] is None:
                break  # it is told when its answer has ended
            seen = entry["n"]
            if not quiet:
                click.echo(json.dumps(entry, ensure_ascii=False) if as_json else _line(entry))


def _line(entry: dict[str, Any]) -> str:
    turn = "" if entry["turn"] is None else f" turns[{entry['turn']}]"
    how = "" if entry["end"] == "end" else f" ({entry['end']})"
    why = "" if entry["sentence"] is None else f": {entry['sentence']}"
    return f"{entry['n']:4} {entry['method']} {entry['path']} -> {entry['status'] or '-'} {entry['answer']}{turn}{how}{why}"
