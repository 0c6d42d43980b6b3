"""The file format for `--baseline FILE`: a list of known failures, each with its reason.

The functions here are pure: they convert text to values, and values to text.

Example:

    - check: message-limit            # the id of a check, one case of it (id[parameter]), suite/module/case, or a glob (* and ?)
      reason: the limit is not passed on yet
    - checks: [turn-tools, "turn-model[gpt-5]"]   # several checks with one reason
      reason: the turn is sent without its tools
      cause: sendUserTurn must have tools          # what their failures say; only for readers
    - check: many-clients*
      reason: depends on the load of the machine
      racy: 1/20                      # fails in about 1 of 20 runs
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from codex_replay.shell.files.yaml_text import load_yaml

UNEXPLAINED = "failed when --update-baseline was run; add a reason"
_KEYS = ("check", "checks", "reason", "racy", "cause")
_RATE = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})")
#: A racy case that fails is rerun so often that an unchanged one fails each time in at most one of so many runs.
_ONE_IN = 100


class BadBaseline(ValueError):
    """The baseline file cannot be used; the text of the exception is a sentence."""


@dataclass(frozen=True, slots=True)
class Rate:
    """The failure rate of a racy case: the case fails in about `failures` of `runs` runs."""

    failures: int
    runs: int

    def __str__(self) -> str:
        return f"{self.failures}/{self.runs}"

    @property
    def tries(self) -> int:
        """Return how often a failed case is rerun before it counts as broken; 0 if half or more of its runs fail."""
        if 2 * self.failures > self.runs:
            return 0
        tries = 1
        while _ONE_IN * self.failures ** (tries + 1) > self.runs ** (tries + 1):
            tries += 1
        return tries


@dataclass(frozen=True, slots=True)
class Line:
    """One check in a baseline.

    All lines of one entry in the file have the same `entry` (the index of the entry) and the same reason.
    """

    check: str
    reason: str
    racy: Rate | None = None
    cause: str = ""
    entry: int = 0

    def matches(self, names: Collection[str]) -> bool:
        """Return True if the baseline line matches a case with these names."""
        pattern = _pattern(self.check)
        return self.check in names if pattern is None else any(pattern.fullmatch(name) for name in names)


@cache
def _pattern(check: str) -> re.Pattern[str] | None:
    """Return the pattern of a glob, or None for a plain name: each line is compared with every case of the run."""
    if not set("*?") & set(check):
        return None
    # An atomic group for all but the last star: otherwise, the time grows exponentially with the number of stars.
    first, *parts = ("".join("." if c == "?" else re.escape(c) for c in part) for part in check.split("*"))
    middle = "".join(f"(?>.*?{part})" for part in parts[:-1])
    return re.compile(first + middle + (f".*{parts[-1]}" if parts else ""))


def parse(text: str, where: str) -> list[Line]:
    """Read a baseline; raises `BadBaseline`."""
    try:
        rows = load_yaml(text)
    except ValueError as error:
        raise BadBaseline(f"{where} is not YAML: {error}.") from None
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise BadBaseline(f"{where} must be a list of entries, each with check and reason.")
    return [line for i, row in enumerate(rows) for line in _entry(row, f"{where}, entry {i + 1}", i)]


def _entry(row: Any, where: str, index: int) -> list[Line]:
    if not isinstance(row, Mapping):
        raise BadBaseline(f"{where}: it must be an object with check and reason.")
    if "flaky" in row:
        raise BadBaseline(f"{where}: replace flaky by racy and how often it fails, such as racy: 1/20.")
    if unknown := [key for key in row if key not in _KEYS]:
        raise BadBaseline(f"{where}: unknown key {unknown[0]!r}; the keys are {', '.join(_KEYS)}.")
    if "check" in row and "checks" in row:
        raise BadBaseline(f"{where}: the entry has both check and checks; keep only one of the two.")
    checks = row.get("checks", [row.get("check")])
    if not isinstance(checks, list) or not checks or not all(isinstance(each, str) and each.strip() for each in checks):
        raise BadBaseline(f"{where}: it has no check.")
    for key in ("reason", "cause"):
        given = row.get(key, "" if key == "reason" else "none")
        if not isinstance(given, str) or not given.strip():
            raise BadBaseline(f"{where}: it has no {key}.")
    reason, cause = row["reason"].strip(), row.get("cause", "").strip()
    rate = _rate(row["racy"], where) if "racy" in row else None
    return [Line(each.strip(), reason, rate, cause, index) for each in checks]


def _rate(given: Any, where: str) -> Rate:
    found = _RATE.fullmatch(given.strip()) if isinstance(given, str) else None
    if found is None or int(found[1]) >= int(found[2]):
        raise BadBaseline(f"{where}: racy must state how often the check fails, such as 1/20 (in 1 of 20 runs), not {given!r}.")
    return Rate(int(found[1]), int(found[2]))


def one_line(line: Line) -> str:
    """Return the text of a line, ready to be pasted into a baseline file."""
    import yaml

    row = {"check": line.check, "reason": line.reason, **({"racy": str(line.racy)} if line.racy is not None else {})}
    return yaml.safe_dump([row], sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=True).strip()[1:-1]


def render(lines: Sequence[Line]) -> str:
    """Return the text of a baseline file with the given lines; lines of the same entry form one entry of the file."""
    entries: dict[int, list[Line]] = {}
    for line in lines:
        entries.setdefault(line.entry, []).append(line)
    import yaml

    rows = []
    for of in entries.values():
        first, checks = of[0], [line.check for line in of]
        row: dict[str, Any] = {"checks": checks} if len(checks) > 1 else {"check": checks[0]}
        row["reason"] = first.reason
        if first.racy is not None:
            row["racy"] = str(first.racy)
        if first.cause:
            row["cause"] = first.cause
        rows.append(row)
    return yaml.safe_dump(rows, sort_keys=False, allow_unicode=True, width=130) if rows else "[]\n"
