"""Write the report of a run from the results of its cases and from the traces in the spool folder.

The whole report is redacted, as one JSON value, before a file is written. Traces were already redacted when they were
collected.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from codex_replay.core.redact.redactor import Redactor
from codex_replay.plugin.base.progress import BY_INIT
from codex_replay.plugin.base.rerun_command import RerunCommand, shell_line
from codex_replay.plugin.reporting.spool import Spool, key_of
from codex_replay.report.data import Case, Report
from codex_replay.report.files import write_all
from codex_replay.report.next_steps import next_steps
from codex_replay.report.traces import TraceText, finite, trace_text

if TYPE_CHECKING:
    from datetime import datetime

    import pytest

    from codex_replay.plugin.reporting.verdict import Verdict

#: What other commands leave next to a report, and what it takes in.
EXTRAS = ("strength", "drift")
#: What is taken in may be nested so deep.
DEEPEST = 100


def machine_paths() -> dict[str, str]:
    """Return the folders of this computer whose names may reveal the user, and their replacements."""
    root = Path(tempfile.gettempdir())
    from getpass import getuser

    with contextlib.suppress(ImportError, KeyError, OSError):  # a user without a name, as pytest takes it
        return {str(root / f"pytest-of-{getuser()}"): str(root / "pytest")}
    return {}


def taken_in(path: Path) -> dict[str, Any] | None:
    """Return the saved output of a command from a file in the report folder.

    Return None if the file does not exist, or an error text if the file is damaged.
    """
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and _shallow(found):
        return cast("dict[str, Any]", finite(found))
    return {"unreadable": f"{path.name} in the report folder is damaged: it is not JSON of a codex-replay command."}


def _shallow(value: Any) -> bool:
    """Return True if a JSON value is not nested too deeply for the programs that read the report."""
    level = [value]
    for _ in range(DEEPEST):
        below = (inner for each in level for inner in (each.values() if isinstance(each, dict) else each))
        level = [inner for inner in below if isinstance(inner, dict | list)]
        if not level:
            return True
    return False


class Reporter:
    """Write the report of one run; `began` is the start of the run, in UTC."""

    def __init__(
        self,
        config: pytest.Config,
        folder: Path,
        began: datetime,
        advice: Iterable[str] = (),
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """`advice` are sentences for `next`, the steps that the report recommends; `more` are further members of the report."""
        self.folder = folder
        self._more = more
        self._advice = advice
        self.next: list[str] = []
        self._config = config
        self._started = began.strftime("%Y-%m-%dT%H:%M:%SZ")
        self._redactor = Redactor(paths=machine_paths())

    def write(self, verdict: Verdict, spool: Spool | None) -> list[Path]:
        """Write all files of the report and return their paths; raises `OSError` if a file cannot be written."""
        report = verdict.report("", self._started)
        again = RerunCommand(self._config, self.folder)
        places = spool.index() if spool is not None else {}
        traces: dict[int, tuple[Path, int]] = {}
        for number, case in enumerate(report["cases"]):
            found = places.get(key_of(case["nodeid"]))
            if found:
                case["story"] = case["id"]
                traces[number] = found
                self._smallest(case, found)
        report.update(cast("Report", self._more))
        for name in EXTRAS:
            other = taken_in(self.folder / f"{name}.json")
            if other is not None:
                report[name] = other  # type: ignore[literal-required]
        clean = cast("Report", self._redactor.value(report))
        # Commands must be such as can be given, so their temporary folders stay; and they are redacted word by word, for what
        # is side by side in a command line is not a sentence.
        plain = Redactor()
        clean["command"] = shell_line(again.whole(), plain.argv)
        clean["subject"] = plain.value(report["subject"])
        redact = plain.argv
        for case, dirty in zip(clean["cases"], report["cases"], strict=True):
            case["again"] = again.line(dirty["nodeid"], redact)
        listed = bool(self._config.option.update_baseline) and not report.get("stopped_early") and BY_INIT not in os.environ
        self.next = next_steps(clean, map(self._redactor.text, self._advice), listed, verdict.passed_again)
        if self.next:
            clean["next"] = self.next
        return write_all(self.folder, clean, self._traces(clean["cases"], traces))

    @staticmethod
    def _smallest(case: Case, found: tuple[Path, int]) -> None:
        """For a failed case that compared no values, return the two values of the smallest difference from its recording."""
        if case["outcome"] in ("failed", "known") and case["expected"] is case["actual"] is None:
            message, _ = Spool.read(found)
            case["expected"], case["actual"] = message.get("expected"), message.get("actual")

    def _traces(self, cases: list[Case], traces: dict[int, tuple[Path, int]]) -> Iterator[TraceText]:
        for number, place in traces.items():
            message, frames = Spool.read(place)
            message["cassette"] = self._relative(message["cassette"]) if message["cassette"] else None
            yield trace_text(cases[number]["story"] or "", message, frames)

    def _relative(self, path: str) -> str:
        root = self._config.rootpath
        return self._redactor.text(str(Path(path).relative_to(root)) if Path(path).is_relative_to(root) else path)
