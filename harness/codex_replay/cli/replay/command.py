"""`codex-replay replay F --app-server S | --backend S`: send the messages of the recorded client, and compare the answers."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from codex_replay.cli.io.console import Place, Unable, as_seconds, aside, console, sentences
from codex_replay.cli.io.script_file import load_script
from codex_replay.cli.io.stdout import for_programs
from codex_replay.cli.io.tables import CODEX, note_with_option
from codex_replay.cli.replay import model
from codex_replay.cli.replay.other_version import absent_methods, absent_text, nulls_apart
from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.text.escape import escape
from codex_replay.core.text.numbers import plural
from codex_replay.plugin.base.subjects import BadSubject, Subject, parse_app_server
from codex_replay.protocol.recordings.compare import Comparison, compare
from codex_replay.protocol.recordings.repeated_ids import following, gathered
from codex_replay.shell.cassettes.file import CassetteReader
from codex_replay.shell.process.subject import CannotStart
from codex_replay.shell.rpc.client import Client, SubjectFailure

SHOWN = 20
EFFECTS_SHOWN = 5
#: The live frames that are compared: so many times the recorded ones, and so many more.
TIMES, MORE = 10, 10_000
#: In a command line: the URL of the backend that answers for the model; the same word as for codex-replay record.
LISTEN = "{listen}"


@dataclass(frozen=True)
class Stage:
    """The server that gets the recorded messages in a replay: its command, environment and directory.

    Further fields of a `Stage`: the real path of each recorded directory, the model of the server (empty for the fake), the
    errors in the server's requests to the model, and the functions to call at certain frames.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    places: dict[str, str] = field(default_factory=dict)
    says: str = ""
    problems: Callable[[], list[str]] = list
    reached: dict[int, Callable[[], None]] = field(default_factory=dict)


@click.command()
@click.argument("cassette", type=Place())
@click.option(
    "--app-server",
    "subject",
    help="Send the JSON-RPC messages to: fake, codex@VERSION, or a command line ({listen} is replaced by the URL of the model).",
)
@click.option("--backend", help="Send the HTTP requests to: fake (which serves the recording), or a URL.")
@click.option(
    "--auth", type=Place(), help="With --backend: an auth.json whose login replaces the redacted login of the recording."
)
@click.option("--backend-cost-ok", is_flag=True, help="With --backend: allow requests to another host, which may cost money.")
@click.option(
    "--script",
    type=Place(),
    help="The script of the model for codex@VERSION (default: the recorded answers, otherwise the script of the recording).",
)
@click.option(
    "--commands-ok",
    is_flag=True,
    help="With a real --app-server: allow the server to run the commands of CASSETTE on this machine.",
)
@click.option(
    "--timeout",
    callback=as_seconds,
    metavar="SECONDS",
    default="10",
    show_default=True,
    help="The number of seconds to wait for each frame.",
)
@CODEX
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@sentences
def command(
    cassette: str,
    subject: str | None,
    backend: str | None,
    auth: str | None,
    backend_cost_ok: bool,
    script: str | None,
    commands_ok: bool,
    timeout: float,
    codex: str | None,
    as_json: bool,
) -> None:
    """Send the messages of the client in CASSETTE to a server or a backend, and compare the answers after normalisation.

    For codex@VERSION, or a command that contains {listen}, the HTTP answers in CASSETTE replace the model. If CASSETTE has
    no HTTP answers, the script in its header replaces the model; without a script, the model gives a default reply. The
    command prints the source of the model's answers. The option --script takes precedence over the HTTP answers and the
    script of CASSETTE.

    Exit status: 0 if the answers are identical, 1 if they differ, 2 if the replay could not run.
    """
    if (subject is None) == (backend is None):
        raise Unable("Name the server that gets the recorded messages: either --app-server or --backend.")
    if backend is None and (auth is not None or backend_cost_ok):
        raise click.UsageError(
            f"{'--backend-cost-ok' if auth is None else '--auth'} has an effect only with --backend; remove this option, or "
            "add --backend."
        )
    if script is not None and not (subject or "").startswith("codex@") and (backend or LISTEN not in str(subject)):
        raise click.UsageError(
            "--script is only for --app-server codex@VERSION, or for a command with {listen}; remove --script."
        )
    given = None if script is None else load_script(Path(script))
    with CassetteReader(cassette) as reader:
        header, frames = reader.header, list(reader)
        truncated = reader.truncated
    if subject is None:
        from codex_replay.cli.replay.backend import play_to_backend

        found, failure, note = play_to_backend(
            cassette, frames, str(backend), codex=codex or header.codex, auth=auth, cost_ok=backend_cost_ok, timeout=timeout
        )
        _report_on(found, failure, truncated, as_json, note=note)
        raise SystemExit(0 if found.equal and failure is None else 1)
    everything, frames = frames, [frame for frame in frames if frame.seam == "rpc"]
    if not any(frame.sender == "client" for frame in frames):
        raise Unable(f"{cassette}: the recording has no JSON-RPC message of a client, so it cannot be replayed to an app-server.")
    cut = next((frame for frame in frames if not frame.whole), None)
    if cut is not None:
        raise Unable(f"{cassette}: frame {cut.n} was truncated when it was recorded, so it cannot be sent.")
    try:
        chosen = parse_app_server(subject)
    except BadSubject as error:
        raise Unable(str(error)) from None
    if not chosen.name.startswith("fake") and not commands_ok:
        _refuse_effects(cassette, header, everything, given)
    if chosen.name.startswith("codex@"):
        _say_needs(header, everything)
    with _stage(chosen, Path(cassette), header, everything, given) as stage:
        live_version = "unknown" if chosen.name.startswith("fake") else chosen.version  # a fake serves the cassette itself
        absent = absent_methods(frames, codex or header.codex, live_version)
        failure, live = _play(stage, everything, codex or header.codex, timeout, absent)
        problems = stage.problems()
    live, flood = within_bounds(frames, live)
    failure = failure or flood
    found = compare(frames, live, codex or header.codex)
    itself = chosen.name == "fake" and stage.env.get("FAKE_CODEX_CASSETTE") == str(cassette)
    note = model.ITSELF if itself else absent_text(absent, chosen.version) if absent else ""
    _report_on(found, failure, truncated, as_json, stage.says, problems, note, absent)
    raise SystemExit(0 if found.equal and failure is None else 1)


def within_bounds(recorded: list[Frame], live: list[Frame]) -> tuple[list[Frame], str | None]:
    """Return the first live frames, and a sentence if a flood of further frames is not compared, which would take minutes."""
    most = TIMES * len(recorded) + MORE
    if len(live) <= most:
        return live, None
    return live[
        :most
    ], f"The live run has {len(live)} frames, and the recording {len(recorded)}: only the first {most} are compared."


def _refuse_effects(cassette: str, header: Header, frames: list[Frame], script: object | None) -> None:
    """Raise `Unable` if a real server would run commands from the cassette, because the user may not have read the cassette."""
    from codex_replay.protocol.recordings.effects import effects

    behind = header.extra.get("upstream")
    behind = behind if isinstance(behind, dict) else {}
    # With --script the recorded answers are not served; the script that was named is the user's own word.
    served = frames if script is None else [frame for frame in frames if frame.seam == "rpc"]
    found = effects(served, behind.get("script") if script is None else None, behind.get("config"))
    if found:
        shown = "".join(f"\n  {effect.where}: {effect.what}" for effect in found[:EFFECTS_SHOWN])
        more = f"\n  and {len(found) - EFFECTS_SHOWN} more" if len(found) > EFFECTS_SHOWN else ""
        raise Unable(
            f"{cassette}: a real server would run the commands of this recording on this machine, with the approval policy and "
            f"sandbox of the recording:{shown}{more}\nRead the recording first (codex-replay cassette show). To allow "
            "the commands, add --commands-ok."
        )


def _say_needs(header: Header, frames: list[Frame]) -> None:
    """Print what the recording needs but the empty home folder of the replay lacks."""
    from codex_replay.protocol.recordings.needs import needs

    behind = header.extra.get("upstream")
    if found := needs(frames, behind.get("config") if isinstance(behind, dict) else None):
        lacking = "; ".join(found)
        aside(
            f"The home folder of a replay may lack parts that this recording needs: {lacking}. If such parts are missing, the "
            "answers may differ."
        )


@contextlib.contextmanager
def _stage(subject: Subject, cassette: Path, header: Header, frames: list[Frame], script: object | None) -> Iterator[Stage]:
    if subject.name.startswith("fake"):
        # The fake serves the cassette itself, unless the environment sets another one; an empty variable counts as unset.
        environment = {name: value for name, value in os.environ.items() if value}
        itself = {} if "FAKE_CODEX_SCRIPT" in environment else {"FAKE_CODEX_CASSETTE": str(cassette), "FAKE_CODEX_MATCH": "exact"}
        yield Stage(subject.argv, {**itself, **environment}, os.getcwd())
        return
    ours = subject.name.startswith("codex@")
    home = os.environ.get("HOME", "")
    places = {"/home/user/work": os.getcwd(), **({"/home/user": home} if home else {})}
    if not ours and LISTEN not in subject.name:
        yield Stage(subject.argv, dict(os.environ), os.getcwd(), places, model.NOT_OURS)
        return
    with model.folder() as root, model.upstream(header, frames, script) as behind:
        stage = Stage(
            tuple(word.replace(LISTEN, behind.session.url) for word in subject.argv),
            dict(os.environ),
            os.getcwd(),
            places,
            behind.says,
            behind.problems,
        )
        if ours:
            made = model.make_home(root, behind.session.url, subject.version, header, frames)
            places = {"/home/user/work": str(made.work), "/home/user": str(made.home)}
            stage = replace(stage, env=dict(made.env), cwd=str(made.work), places=places)
        yield replace(stage, reached=behind.serve(cassette, frames, places, root))


def _play(
    stage: Stage, frames: list[Frame], codex: str, timeout: float, absent: Container[str]
) -> tuple[str | None, list[Frame]]:
    from codex_replay.core.redact.redactor import Redactor
    from codex_replay.shell.rpc.player import Player

    try:
        client = Client(stage.argv, env=stage.env, cwd=stage.cwd, timeout=timeout)
    except CannotStart as error:
        raise Unable(str(error)) from None
    try:
        failure = Player(client, stage.places, codex, absent).play(frames, stage.reached)
        try:
            status = client.close()
        except SubjectFailure as error:
            failure = failure or str(error)
        else:
            if status == 2 and not client.raw("server"):
                raise Unable("The server could not run: " + " ".join(client.process.stderr_tail(5)))
            if status != 0 and failure is None:
                failure = client.report_on("The server did not exit cleanly when its stdin ended")
    finally:
        client.stop()
    # Another tool's recording may have the directories as they are; what it does not name need not be renamed.
    named = {recorded for recorded in stage.places if any(recorded.encode() in frame.raw for frame in frames)}
    redactor = Redactor(paths={live: recorded for recorded, live in stage.places.items() if recorded in named})
    return failure, [Frame(f.n, f.t, f.seam, f.sender, raw=redactor.redact(f.raw)) for f in client.timeline]


def _report_on(
    found: Comparison,
    failure: str | None,
    truncated: str | None,
    as_json: bool,
    says: str = "",
    problems: Sequence[str] = (),
    note: str = "",
    absent: Container[str] = (),
) -> None:
    same = found.equal and failure is None
    if found.note:
        aside(note_with_option(found.note))
    if note == model.ITSELF and not same:
        note = ""
    if as_json:
        names = {"a": "recorded", "b": "live"}
        differences = [{names.get(key, key): value for key, value in asdict(d).items()} for d in found.differences]
        missing = [found.note] if found.note else []
        result: dict[str, Any] = {"identical": same, "failure": failure, "truncated": truncated, "missing": missing}
        result["differences"] = differences
        if note:
            result["note"] = note
        for_programs(json.dumps({**result, **({"model": says, "model_problems": list(problems)} if says else {})}))
        return
    out = console()
    if absent:
        out.print(escape(note))
        note = ""
    if truncated:
        out.print(truncated)
    if says and says != model.RECORDED:
        out.print(says)
    if failure:
        out.print(failure)
    for problem in () if same else problems:
        out.print(f"The model has no answer for a request: {problem}")
    unexpected = [one for one in found.differences if one.kind != "missing" or one.label.removeprefix("rpc< ") not in absent]
    unexpected, nulls = nulls_apart(unexpected)
    shown = gathered(unexpected)
    for difference, more in shown[:SHOWN]:
        out.print(escape(difference.sentence("the recording", "the live run")) + following(more))
    if left_out := sum(1 + more for _, more in shown[SHOWN:]):
        out.print(f"... and {left_out} more differences.")
    if nulls:
        out.print(escape(nulls))
    if same:
        out.print(f"identical: {plural(found.a, 'event')}, the same as recorded")
    if note:
        out.print(note)
    if not same:
        out.print(f"different: {plural(found.a, 'event')} recorded, {found.b} received")
