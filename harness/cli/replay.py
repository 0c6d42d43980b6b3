"""`codex-replay replay F --app-server S | --backend S`: play the recorded client and compare what comes back."""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from harness.cli.console import Unable, console, sentences
from harness.core.frames import Frame, Header
from harness.plugin.subjects import BadSubject, Subject, parse_app_server
from harness.protocol.compare import Comparison, compare
from harness.shell.cassette import CassetteReader
from harness.shell.client import Client, SubjectFailure
from harness.shell.process import CannotStart

SHOWN = 20


@dataclass(frozen=True)
class Stage:
    """Where a subject is played to: its environment, its directory, and what the recording's directories are there."""

    env: dict[str, str]
    cwd: str
    places: dict[str, str] = field(default_factory=dict)


@click.command()
@click.argument("cassette", type=click.Path())
@click.option("--app-server", "subject", help="Play the rpc seam to: fake, codex@VERSION, or a command line.")
@click.option("--backend", help="Play the http seam to: fake (it serves the recording itself), or a URL.")
@click.option("--auth", type=click.Path(), help="With --backend: the auth.json whose login takes the place of the redacted one.")
@click.option(
    "--backend-cost-ok", is_flag=True, help="With --backend: a backend on another host may be asked, and may cost money."
)
@click.option(
    "--script", type=click.Path(), help="What the model behind codex@VERSION says (default: the recording's own script)."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="Seconds to wait for a frame.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@sentences
def command(
    cassette: str,
    subject: str | None,
    backend: str | None,
    auth: str | None,
    backend_cost_ok: bool,
    script: str | None,
    timeout: float,
    as_json: bool,
) -> None:
    """Play the client recorded in CASSETTE to a server or a backend; compare what comes back, after normalisation.

    Exit status: 0 identical, 1 different, 2 could not run.
    """
    if (subject is None) == (backend is None):
        raise Unable("Name what to play to: --app-server or --backend, one of them.")
    if math.isnan(timeout):
        raise click.UsageError("--timeout nan: give a number of seconds.")
    if backend is None and (auth is not None or backend_cost_ok):
        raise click.UsageError(f"{'--backend-cost-ok' if auth is None else '--auth'} is for --backend; leave it out.")
    if script is not None and not (subject or "").startswith("codex@"):
        raise click.UsageError("--script is for the model behind --app-server codex@VERSION; nothing else here has one.")
    with CassetteReader(cassette) as reader:
        header, frames = reader.header, list(reader)
        truncated = reader.truncated
    if subject is None:
        from harness.cli.replay_backend import play_to_backend

        found, failure = play_to_backend(cassette, frames, str(backend), auth=auth, cost_ok=backend_cost_ok, timeout=timeout)
        _tell(found, failure, truncated, as_json)
        raise SystemExit(0 if found.equal and failure is None else 1)
    frames = [frame for frame in frames if frame.seam == "rpc"]
    if not any(frame.sender == "client" for frame in frames):
        raise Unable(f"{cassette}: it holds no client frame on the rpc seam, so there is nothing to play.")
    cut = next((frame for frame in frames if not frame.whole), None)
    if cut is not None:
        raise Unable(f"{cassette}: frame {cut.n} was cut for size when it was recorded, so it cannot be played.")
    try:
        chosen = parse_app_server(subject)
    except BadSubject as error:
        raise Unable(str(error)) from None
    with _stage(chosen, Path(cassette), header, script) as stage:
        failure, live = _play(chosen, stage, frames, timeout)
    found = compare(frames, live)
    _tell(found, failure, truncated, as_json)
    raise SystemExit(0 if found.equal and failure is None else 1)


@contextlib.contextmanager
def _stage(subject: Subject, cassette: Path, header: Header, script: str | None) -> Iterator[Stage]:
    if subject.name.startswith("fake"):
        # With the fake, the cassette itself is what it serves, unless the environment says otherwise; empty says nothing.
        said = {name: value for name, value in os.environ.items() if value}
        yield Stage({"FAKE_CODEX_CASSETTE": str(cassette), "FAKE_CODEX_MATCH": "exact", **said}, os.getcwd())
    elif not subject.name.startswith("codex@"):
        home = os.environ.get("HOME", "")
        yield Stage(dict(os.environ), os.getcwd(), {"/home/user/work": os.getcwd(), **({"/home/user": home} if home else {})})
    else:
        yield from _hermetic(subject, header, script)


def _hermetic(subject: Subject, header: Header, script: str | None) -> Iterator[Stage]:
    from harness.shell.backend_process import BackendError, BackendProcess
    from harness.shell.codex import HermeticHome

    upstream: dict[str, Any] = header.extra.get("upstream") or {}
    says = _read_script(script) if script else upstream.get("script")
    with tempfile.TemporaryDirectory(prefix="codex-replay-") as root:
        try:
            with BackendProcess() as backend:
                session = backend.session("replay", says)
                home = HermeticHome(Path(root), session.url, version=subject.version, extra_config=upstream.get("config"))
                places = {"/home/user/work": str(home.work), "/home/user": str(home.home)}
                yield Stage(dict(home.env), str(home.work), places)
        except BackendError as error:
            raise Unable(str(error)) from None


def _read_script(path: str) -> Any:
    with open(path, "rb") as file:
        try:
            return json.load(file)
        except ValueError as error:
            raise Unable(f"{path}: the script is not JSON ({error}); see docs/scripts.md.") from None


def _play(subject: Subject, stage: Stage, frames: list[Frame], timeout: float) -> tuple[str | None, list[Frame]]:
    from harness.core.redact import Redactor
    from harness.shell.player import Player

    try:
        client = Client(subject.argv, env=stage.env, cwd=stage.cwd, timeout=timeout)
    except CannotStart as error:
        raise Unable(str(error)) from None
    try:
        failure = Player(client, stage.places).play(frames)
        try:
            status = client.close()
        except SubjectFailure as error:
            failure = failure or str(error)
        else:
            if status == 2 and not client.raw("server"):
                raise Unable("The server could not run: " + " ".join(client.process.stderr_tail(5)))
            if status != 0 and failure is None:
                failure = client.tell("The server did not end well when its stdin ended")
    finally:
        client.stop()
    redactor = Redactor(paths={live: recorded for recorded, live in stage.places.items()})
    return failure, [Frame(f.n, f.t, f.seam, f.sender, raw=redactor.redact(f.raw)) for f in client.timeline]


def _tell(found: Comparison, failure: str | None, truncated: str | None, as_json: bool) -> None:
    same = found.equal and failure is None
    if as_json:
        differences = [
            {"kind": d.kind, "label": d.label, "recorded": d.a, "live": d.b, "path": d.path, "left": d.left, "right": d.right}
            for d in found.differences
        ]
        click.echo(json.dumps({"identical": same, "failure": failure, "truncated": truncated, "differences": differences}))
        return
    out = console()
    if truncated:
        out.print(truncated)
    if failure:
        out.print(failure)
    for difference in found.differences[:SHOWN]:
        out.print(difference.sentence("the recording", "the live run"))
    if len(found.differences) > SHOWN:
        out.print(f"... and {len(found.differences) - SHOWN} more differences.")
    out.print(
        f"identical: {found.a} events, the same as recorded" if same else f"different: {found.a} events recorded, {found.b} came"
    )
