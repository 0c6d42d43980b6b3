"""`codex-replay codex add|remove`: make the data of a Codex version from its binary, and report the learnt facts."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from codex_replay.cli.io.console import Unable, sentences
from codex_replay.cli.io.stdout import for_programs
from codex_replay.cli.io.suite_names import no_expression, resolve
from codex_replay.core.text.escape import escape
from codex_replay.core.text.numbers import plural
from codex_replay.protocol.learning.causes import EFFECT
from codex_replay.shell.codex import add as adding
from codex_replay.shell.codex.cache import check_version
from codex_replay.shell.codex.errors import CodexInstallError
from codex_replay.shell.codex.suite_run import SUITE, CannotRun
from codex_replay.shell.files import version_data

#: Seconds between two lines of progress.
EVERY = 30.0
#: So many scenarios are named; `learnt.json` has all.
SHOWN = 8


@click.command("add")
@click.argument("version")
@click.option("--runs", default=2, show_default=True, type=click.IntRange(2, 20), help="The number of runs of the suite.")
@click.option(
    "--wait",
    default=3.0,
    show_default=True,
    type=click.FloatRange(0.5, 600),
    help="The number of seconds that a case waits for a frame.",
)
@click.option(
    "--jobs", default=2, show_default=True, type=click.IntRange(1), help="The number of cases that run at the same time."
)
@click.option("-k", "chosen", default="", metavar="EXPR", help="Run only the cases that match, like pytest's -k.")
@click.option("--json", "as_json", is_flag=True, help="Print learnt.json.")
@sentences
def command(version: str, runs: int, wait: float, jobs: int, chosen: str, as_json: bool) -> None:
    """Make the schema bundles, tables and recordings of Codex VERSION. The Codex binary of VERSION generates the data, offline.

    Installs VERSION, asks its binary for schemas, methods and configuration keys, runs the suite several times, and learns
    from the differences between the runs. `codex add` takes about seven minutes on two idle cores. Finished steps of
    `codex add` are kept: after an interrupt, run the same command again to continue.
    """
    if why := no_expression(chosen):
        raise Unable(why)
    suites = Path(resolve((SUITE,))[0]).resolve().parent
    lines = _Lines()
    try:
        check_version(version)
        place = adding.add(
            version, suites, adding.Listener(lines.stage, lines.step), runs=runs, wait=wait, jobs=jobs, chosen=chosen
        )
    except (adding.CannotAdd, CodexInstallError, CannotRun) as error:
        raise Unable(str(error)) from None
    learnt = adding.learnt(version)
    assert learnt is not None
    if as_json:
        for_programs(json.dumps(learnt, indent=2))
    else:
        click.echo(summary(learnt, place))


@click.command("remove")
@click.argument("version")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@sentences
def remove(version: str, as_json: bool) -> None:
    """Remove the data that `codex add` made for VERSION; the installed binary and the recorded runs stay in the cache."""
    try:
        check_version(version)
    except CodexInstallError as error:
        raise Unable(str(error)) from None
    if version in version_data.packaged():
        raise Unable(f"Codex {version} is packaged with codex-replay and cannot be removed.")
    if not adding.remove(version):
        raise Unable(f"Codex {version} has not been added; `codex-replay codex list` lists the versions.")
    if as_json:
        for_programs(json.dumps({"version": version, "folder": str(version_data.added_folder())}))
    else:
        click.echo(f"Codex {version} is removed from {version_data.added_folder()}.")


def state(version: str) -> str:
    """Return the state of a version for `codex list`: the installed parts and the added tables."""
    if version in version_data.packaged():
        return "packaged"
    learnt = adding.learnt(version)
    if learnt is None:
        return "not added"
    cases, cassettes = learnt["scenarios"], learnt["cassettes"]["kept"]
    return f"added: {cases['passed']} of {cases['all']} cases pass, {cassettes} recordings"


def summary(learnt: dict[str, Any], place: Path) -> str:
    """Return a text that lists the learnt facts, the missing facts, and the commands that now work with the version."""
    cases, kept = learnt["scenarios"], learnt["cassettes"]
    normal, causal = learnt["normalise"], learnt["causality"]
    parts = {part: [row["rule"] for row in normal["rows"] if row["part"] == part] for part in ("keys", "headers", "strings")}
    unordered, races = ([row for row in normal["rows"] if row["part"] == part] for part in ("unordered_keys", "races"))
    keys = learnt["config_keys"]
    lines = [
        f"Codex {learnt['codex']} is added: {place}",
        "",
        "Learnt:",
        "  schema            the plain bundle, and the experimental one if the version has it",
        f"  methods           {learnt['methods']['listed']} methods with the words of their refusal",
        f"  config-keys       {keys['found']} keys" + (f" of {keys['of']} that the binary counts" if keys["of"] else ""),
        f"  normalise         {len(parts['keys'])} masked keys, {len(parts['headers'])} headers, {len(parts['strings'])} texts, "
        f"{len(unordered)} objects without order, {len(races)} races, from {normal['pairs']} pairs of runs",
        f"  causality         {', '.join(sorted({row['rule'] for row in causal['rows']})) or 'nothing'}",
        f"  cassettes         {plural(kept['kept'], 'recording')} from the {plural(cases['passed'], 'case')} that passed in each "
        f"run, of {cases['all']} in all; a case has one for each server that it starts",
        "",
        "Not learnt:",
    ]
    lines += [f"  causality.{row}: no run showed it, so {EFFECT[row]}" for row in causal["not_seen"]]
    unexplained = learnt["unexplained"]
    if unexplained:
        lines.append(f"  {len(unexplained)} scenarios differ between two runs, and no rule explains why; these were not kept:")
        lines += [f"    {name}: {escape(why)[:150]}" for name, why in sorted(unexplained.items())[:SHOWN]]
        lines += [f"    and {len(unexplained) - SHOWN} more in learnt.json"] if len(unexplained) > SHOWN else []
    lines += [f"  recording {name} dropped: {escape(why)[:150]}" for name, why in sorted(kept["dropped"].items())[:SHOWN]]
    lines += [f"  {names}: {why}" for names, why in learnt["written"].items()]
    lines += [
        "",
        "What this means:",
        "  cassette lint, run       frames are checked with the version's own bundles",
        "  replay, cassette diff    times, paths and races are normalised with the version's own table",
        "  fake-codex, a cassette   frames wait for their causes; unknown requests are refused in the version's words",
        "  fake-codex, a script     not possible: the scripted fake speaks packaged versions only",
    ]
    return "\n".join(lines)


class _Lines:
    """Print progress lines on stderr: one for each stage, and the count of the stage every `EVERY` seconds."""

    def __init__(self) -> None:
        self._what, self._last = "", 0.0

    def stage(self, what: str) -> None:
        """Report the current stage."""
        self._what, self._last = what, time.monotonic()
        click.echo(f"{what} ...", err=True)

    def step(self, done: int, total: int | None) -> None:
        """Report the steps done."""
        now = time.monotonic()
        if now - self._last >= EVERY:
            self._last = now
            click.echo(f"{self._what}: {done}{'' if total is None else f' of {total}'}", err=True)
