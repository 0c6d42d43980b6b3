"""Split one `codex-replay run` into several runs of pytest (parts).

A part of a run has suites and options from the command line, and options from the project's configuration.

In the configuration, a program under test may have its own profile and baseline. Suites with different profiles or
baselines are different parts: they run one after another, each in a separate pytest process.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from codex_replay.cli.io.suite_names import BadUse
from codex_replay.plugin.base.configuration import SUITE_OF, TABLE, Configuration
from codex_replay.plugin.base.places import installed_suites

#: How many cases run at a time by default. A case of a proxy that the run starts mostly waits: for the model, for the end of a
#: turn, and, if the proxy has a defect, for an answer. Such a run has two cases for each core, four at most.
JOBS, JOBS_OF_A_PROXY = 2, 4
#: The keys of a subject that are options of the run.
_OF_A_RUN = ("profile", "baseline")


@dataclass(frozen=True, slots=True)
class Part:
    """The arguments for one pytest process: the suites that the user named, and the options that the configuration adds."""

    suites: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)


def parts(suites: Sequence[str], given: Mapping[str, str | None], own: Configuration, here: Path) -> list[Part]:
    """Return the parts of a run.

    `given` has the options of the command line; they take precedence over the configuration. `here` is the working
    directory.

    If the user names no suites, the suites for the configured programs run; if no program is configured, all suites run. Raises
    `BadUse` and
    `BadConfiguration`.
    """
    named = tuple(suites) or tuple(suite for role, suite in SUITE_OF.items() if own.table.get(role))
    found: list[Part] = []
    for name in named:
        options = _options(_role(name), given, own, here)
        same = next((part for part in found if part.options == options), None)
        if same is None:
            found.append(Part((name,), options))
        else:
            found[found.index(same)] = Part((*same.suites, name), options)
    report = given.get("report")
    return [_with_report(part, report) for part in found] if report and len(found) > 1 else found or [Part(())]


def only_ours(suites: Sequence[str], given: Mapping[str, str | None], own: Configuration, here: Path) -> bool:
    """Return True if the run tests only programs of codex-replay, although its suites could test a program of the user; return
    False in a checkout of codex-replay.
    """
    if any(given.get(role) or own.table.get(role) for role in (*SUITE_OF, "app-server", "backend")):
        return False
    about = {name.partition("/")[0] for name in suites}
    return here / "suites" != installed_suites() and (not about or not about.isdisjoint(SUITE_OF.values()))


def default_jobs(part: Part, given: Mapping[str, str | None], own: Configuration) -> int:
    """Return how many cases of a part run at a time by default.

    For a proxy that the user started, at most two cases run at a time.
    """
    if {_name(name) for name in part.suites} != {"proxy"}:
        return JOBS
    proxy = given.get("proxy") or ""
    rows = own.subjects("proxy")
    runs = "url" in rows.get(proxy or next(iter(rows), ""), {}) or proxy.startswith(("http://", "https://"))
    return JOBS if runs else min(JOBS_OF_A_PROXY, JOBS * (os.cpu_count() or 1))


def _name(suite: str) -> str:
    return suite.removeprefix("./").removeprefix("suites/").rstrip("/")


def _role(name: str) -> str | None:
    suite = _name(name).partition("/")[0]
    return next((role for role, its in SUITE_OF.items() if its == suite), None)


def _options(role: str | None, given: Mapping[str, str | None], own: Configuration, here: Path) -> dict[str, str]:
    rows = own.subjects(role) if role is not None else {}
    name = given.get(role) if role is not None else None
    if name is None and len(rows) > 1:
        raise BadUse(f"{own.path} has more than one [{TABLE}.{role}]; name one of them with --{role}: {', '.join(rows)}.")
    row = rows.get(next(iter(rows)) if name is None and rows else name or "", {})
    options = {key: row[key] for key in _OF_A_RUN if isinstance(row.get(key), str) and given.get(key) is None}
    if "baseline" in options and own.path is not None:
        options["baseline"] = os.path.relpath(own.path.parent / options["baseline"], here)
    return options


def _with_report(part: Part, report: str) -> Part:
    """Give one of several parts its own folder in the report folder of the run."""
    name = "-".join(suite.replace("/", "-").partition("::")[0] for suite in part.suites)
    return Part(part.suites, {**part.options, "report": str(Path(report) / name)})
