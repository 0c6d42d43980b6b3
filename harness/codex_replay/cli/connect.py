"""`codex-replay connect`: connect stdin and stdout to an app-server that speaks WebSocket."""

from __future__ import annotations

import signal
from types import FrameType

import click

from codex_replay.cli.io.console import Unable, sentences
from codex_replay.shell.rpc.bridge import SCHEMES, CannotConnect, Started, bridge, connected


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True, metavar="URL | -- CMD [ARGS]...")
@sentences
def command(words: tuple[str, ...]) -> None:
    """Connect stdin and stdout to an app-server that speaks WebSocket.

    URL is ws://HOST:PORT, wss://HOST or unix://PATH of a running server. If CMD is given, start CMD with the additional
    arguments `--listen ws://127.0.0.1:PORT`, and end CMD when stdin ends. Each line of stdin is sent to the server as a
    message; each message of the server is printed as a line.

    Exit status: 0 if stdin ended, 1 if the server closed the connection, 2 if connecting failed.
    """
    signal.signal(signal.SIGTERM, _leave)
    try:
        if words[0].startswith(SCHEMES):
            if len(words) > 1:
                raise Unable(f"No argument is expected after {words[0]}; remove {words[1]!r}.")
            status = _pass(words[0])
        else:
            with Started(words) as server:
                status = _pass(server.url)
    except CannotConnect as error:
        raise Unable(str(error)) from None
    raise SystemExit(status)


def _pass(url: str) -> int:
    with open(1, "wb", closefd=False) as out:
        whole = bridge(connected(url), 0, out)
    if whole:
        return 0
    click.echo("The app-server closed the connection.", err=True)
    return 1


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # the server that was started ends, too
