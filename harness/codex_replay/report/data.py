"""The data of a report: the result of each case (report.json), and the traffic of each case (stories.ndjson).

The types are plain dictionaries, exactly as in the files. When report.json is read, it is checked with
`report.schema.json`. Traces may be large, so they are read and written one by one (`codex_replay.report.traces`). The
results and traces must be redacted already: nothing is redacted here.

    DIR/report.json      Report, format 2
    DIR/stories.ndjson   one Trace per line, for the cases whose `story` is not null
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from codex_replay.shell.files import atomic

FORMAT = 2
REPORT, TRACES = "report.json", "stories.ndjson"
#: From worst to best. `known` is a failure that a baseline lists, or a racy one: it does not make the run fail.
OUTCOMES = ("failed", "known", "skipped", "passed")
#: The maximum number of characters of a frame's text.
LONGEST_FRAME = 1 << 16

Outcome = Literal["failed", "known", "skipped", "passed"]
#: The role of the subject of each suite; a user's own suite tests an app-server.
ROLES = {"backend": "backend", "lite_client": "lite-client", "editor_client": "editor-client", "proxy": "proxy"}


class BadReport(ValueError):
    """The file is not a readable report; the text is a sentence with the reason."""


class Spec(TypedDict):
    """The requirement of a check: the stable id of the check, and the page, identifiers and texts of the statements that it
    asserts (or another source).

    `links` are the places of the statements in the repository, in order; for another source, `links` is empty.
    """

    check: str
    document: str
    section: str
    line: int | None
    text: str
    links: NotRequired[list[str]]


class RunOutcome(TypedDict):
    """The verdict of one run on a case that several runs had; `run` is the index of the run in `runs`."""

    run: int
    outcome: Outcome
    seconds: float
    message: str


class Alone(TypedDict):
    """The result of a case that was rerun."""

    outcome: Outcome
    seconds: float
    message: str


class Case(TypedDict):
    """The result of one case in a report.

    `id` is suite/module/case, and unique in the report. `message` is the short reason for a failure, a skip or a known
    failure; `details` is the full text. `expected` and `actual` exist if the failed assertion compared two values. `story`
    is the id of the trace (the traffic of the case) in stories.ndjson. `again` is the shell command that reruns the case
    alone. `told` has the verdict of each run, if several runs had the case. `run` is the index of the case's run in `runs`;
    only cases in a merged report have it. `alone` has the results of all reruns, in order, if the case differed from the
    baseline and was rerun.
    """

    id: str
    suite: str
    module: str
    case: str
    nodeid: str
    title: str
    spec: Spec | None
    outcome: Outcome
    seconds: float
    message: str
    details: str
    expected: str | None
    actual: str | None
    recorded: list[str]
    again: str
    story: str | None
    alone: NotRequired[list[Alone]]
    run: NotRequired[int]
    told: NotRequired[list[RunOutcome]]


class Run(TypedDict):
    """One of the runs in a merged report; `cases` is the number of its cases."""

    name: str
    command: str
    started: str
    seconds: float
    verdict: str
    subject: dict[str, str]
    codex: str
    profile: str
    cases: int


class Report(TypedDict):
    """The result of a run.

    `stale` are lines of a baseline whose checks now pass; `interrupted` is True if not all cases ran. Both stale lines and
    an interruption make the verdict `failed`. `racy` are checks whose result changed in a rerun, although the baseline does
    not mark them as racy. `stopped_early` is the number of selected cases, if the run stopped because its first cases all
    failed, most of them for one cause. `next` are the recommended steps, the most useful first. `runs` lists the merged
    runs, if the report is a merged one.
    """

    report: int
    verdict: str
    subject: dict[str, str]
    codex: str
    profile: str
    profiles: list[str]
    record: str
    validated: bool
    command: str
    started: str
    seconds: float
    cases: list[Case]
    interrupted: NotRequired[bool]
    stopped_early: NotRequired[int]
    next: NotRequired[list[str]]
    stale: NotRequired[list[str]]
    racy: NotRequired[list[str]]
    runs: NotRequired[list[Run]]
    coverage: NotRequired[dict[str, Any]]
    proxy_fields: NotRequired[dict[str, Any]]
    strength: NotRequired[dict[str, Any]]
    drift: NotRequired[dict[str, Any]]


#: One frame that was seen or expected (in the functional form, since `from` is a keyword of Python).
#:
#: `n` counts from 1 in the trace, `t` is seconds since its start. `conn` numbers connections on http, and on rpc processes
#: where there are several. `text` is the frame itself, cut at `LONGEST_FRAME`; `cut` is then its full length in characters.
#: `mark` is the difference from the expected frame ("missing": it never came, `text` is empty), `expected` is the frame
#: that should be here, as text, and `paths` are the JSON paths at which the two differ, the smallest difference first.
#: `bound` are values that are known by a name ("<thread:1> = ..."), `masked` the JSON paths of values that are not compared.
Frame = TypedDict(
    "Frame",
    {
        "n": int,
        "t": float | None,
        "seam": Literal["rpc", "http"],
        "from": Literal["client", "server"],
        "conn": str | int | None,
        "kind": str,
        "what": str,
        "text": str,
        "cut": NotRequired[int],
        "mark": Literal["different", "missing", "unexpected"] | None,
        "expected": str | None,
        "paths": list[str],
        "bound": list[str],
        "masked": list[str],
    },
)


class Trace(TypedDict):
    """The trace of one case.

    If `source` is "recorded", the frames of the case equal its cassette, and the trace shows the frames of the cassette.
    """

    case: str
    source: Literal["recorded", "this run"]
    cassette: str | None
    truncated: bool
    frames: list[Frame]


class Sums(TypedDict):
    """The number of cases, their outcomes, and the sum of their durations in seconds."""

    cases: int
    passed: int
    failed: int
    known: int
    skipped: int
    seconds: float


def sums(cases: Iterable[Case]) -> Sums:
    """Add cases up."""
    found: Sums = {"cases": 0, "passed": 0, "failed": 0, "known": 0, "skipped": 0, "seconds": 0.0}
    for case in cases:
        found["cases"] += 1
        found[case["outcome"]] += 1
        found["seconds"] += case["seconds"]
    return found


def verdict(cases: Iterable[Case]) -> str:
    """Return `failed`, `verified`, or `nothing verified` if no case passed."""
    outcomes = {case["outcome"] for case in cases}
    if "failed" in outcomes:
        return "failed"
    return "verified" if "passed" in outcomes else "nothing verified"


def by_suite(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Return the cases of each suite; the suites have the order of their first cases."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case["suite"], []).append(case)
    return found


def by_spec(cases: Iterable[Case]) -> dict[str, dict[str, list[Case]]]:
    """Return the cases by document of the specification and by section, sorted by name."""
    found: dict[str, dict[str, list[Case]]] = {}
    for case in cases:
        spec = case["spec"]
        if spec is not None:
            found.setdefault(spec["document"], {}).setdefault(spec["section"], []).append(case)
    return {document: dict(sorted(sections.items())) for document, sections in sorted(found.items())}


# -- files -------------------------------------------------------------------------------------------------------------------


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of report.json.

    The `$defs` of the schema also have `story`, the schema of a line in stories.ndjson.
    """
    found: dict[str, Any] = json.loads(Path(__file__).with_name("report.schema.json").read_bytes())
    return found


def write_report(folder: Path, report: Report) -> Path:
    """Write `folder`/report.json and return its path; if writing fails, the old file stays unchanged and `OSError` is raised."""
    path = folder / REPORT
    write_whole(path, json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    return path


def write_whole(path: Path, text: str) -> None:
    """Write a text file atomically, so that no reader sees an incomplete file; raises `OSError` if the file cannot be written.

    Lone surrogates are escaped.
    """
    atomic.write_whole(path, text.encode("utf-8", "backslashreplace"))


def read_report(folder: Path) -> Report:
    """Read the report in a folder; raises `BadReport` if there is no valid report."""
    path = folder / REPORT
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        why = "there is no such folder" if not folder.is_dir() else f"it has no {REPORT}"
        raise BadReport(f"{folder} is not a report: {why}; give a folder that --report wrote.") from None
    except OSError as error:
        raise BadReport(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise BadReport(f"{path} is incomplete or not JSON ({error}); run the suite again.") from None
    kind = value.get("report") if isinstance(value, dict) else None
    if kind is None:
        raise BadReport(f"{path} is not a report of codex-replay: it has no format number under 'report'.")
    if kind != FORMAT:
        raise BadReport(f"{path} has report format {kind!r}; this version reads format {FORMAT}. Run the suite again.")
    problem = _problem(value)
    if problem:
        raise BadReport(f"{path} is damaged: {problem}.")
    report: Report = value
    return report


def _problem(value: Any) -> str:
    import jsonschema_rs

    try:
        jsonschema_rs.Draft202012Validator(schema()).validate(value)
    except jsonschema_rs.ValidationError as error:
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
        return f"{where.removeprefix('.') or 'it'}: {str(error).splitlines()[0][:200]}"
    return ""


def worst(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the worst of several outcomes of a case."""
    return min(outcomes, key=OUTCOMES.index)
