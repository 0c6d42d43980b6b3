"""Writes the report of a run: what the verdict has collected and what the processes of the run have put into the spool.

Everything is redacted here, as one JSON value, before any file is made of it; the stories were redacted where they were taken.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from harness.core.redact import Redactor
from harness.plugin.again import Again, shell_line
from harness.plugin.story import Spool, key_of
from harness.report.cassette_story import cassette_story
from harness.report.files import write_all
from harness.report.model import Case, Report, Story
from harness.shell.cassette import CassetteError

if TYPE_CHECKING:
    from datetime import datetime

    import pytest

    from harness.plugin.verdict import Verdict

#: What other commands leave beside a report, and what it takes in.
BESIDE = ("strength", "drift")


def machine_paths() -> dict[str, str]:
    """Return the folders of this machine that tell who is at work, and what they become."""
    root = Path(tempfile.gettempdir())
    with contextlib.suppress(Exception):  # a user without a name
        from getpass import getuser

        return {str(root / f"pytest-of-{getuser()}"): str(root / "pytest")}
    return {}


class Reporter:
    """Writes the report of one run; `began` is when, in UTC."""

    def __init__(self, config: pytest.Config, folder: Path, began: datetime) -> None:
        self.folder = folder
        self._config = config
        self._started = began.strftime("%Y-%m-%dT%H:%M:%SZ")
        self._redactor = Redactor(paths=machine_paths())

    def write(self, verdict: Verdict, spool: Spool | None) -> list[Path]:
        """Write all files and return their paths; raises `OSError`."""
        report = verdict.report("", self._started)
        again = Again(self._config, self.folder)
        places = spool.index() if spool is not None else {}
        sources: dict[int, tuple[Path, int] | list[str]] = {}
        for number, case in enumerate(report["cases"]):
            found = places.get(key_of(case["nodeid"])) or verdict.cassettes.get(case["id"])
            if found:
                case["story"] = case["id"]
                sources[number] = found
                self._smallest(case, found)
        for name in BESIDE:
            self._take_in(report, name)
        clean = cast("Report", self._redactor.value(report))
        # Commands must be such as can be given, so their temporary folders stay; and they are redacted word by word, for what
        # stands side by side in a command line is no sentence.
        plain = Redactor()
        given = [str(word) for word in self._config.invocation_params.args]
        clean["command"] = shell_line(["pytest", *given], plain.argv)
        clean["subject"] = plain.value(report["subject"])
        for case, dirty in zip(clean["cases"], report["cases"], strict=True):
            case["again"] = shell_line(again.words(dirty["nodeid"]), plain.argv)
        return write_all(self.folder, clean, self._stories(clean["cases"], sources))

    @staticmethod
    def _smallest(case: Case, found: tuple[Path, int] | list[str]) -> None:
        """Of a failure that says nothing of two values, the smallest difference to the recording tells them."""
        if isinstance(found, tuple) and case["outcome"] in ("failed", "known") and case["expected"] is case["actual"] is None:
            story = Spool.read(found)
            case["expected"], case["actual"] = story.get("expected"), story.get("actual")

    def _stories(self, cases: list[Case], sources: dict[int, tuple[Path, int] | list[str]]) -> Iterator[Story]:
        for number, source in sources.items():
            name = cases[number]["story"] or ""
            if isinstance(source, tuple):
                said = Spool.read(source)
                cassette = self._relative(said["cassette"]) if said["cassette"] else None
                yield {
                    "case": name,
                    "source": "this run",
                    "cassette": cassette,
                    "truncated": said["truncated"],
                    "frames": said["frames"],
                }
            elif story := self._recorded(name, source):
                yield story

    def _recorded(self, name: str, paths: list[str]) -> Story | None:
        """Return the story of a case that reproduced its cassettes, one a server."""
        joined: Story | None = None
        for number, path in enumerate(paths, 1):
            try:
                story = cassette_story(path, name)
            except CassetteError:
                continue  # it was there a moment ago; the case's verdict does not hang on it
            if len(paths) > 1:
                for frame in story["frames"]:
                    frame["conn"] = number if frame["seam"] == "rpc" else frame["conn"]
            if joined is None:
                joined = story
                joined["cassette"] = self._relative(path)
                continue
            joined["frames"] += story["frames"]
            joined["truncated"] = joined["truncated"] or story["truncated"]
        for n, frame in enumerate(joined["frames"] if joined else (), 1):
            frame["n"] = n
        return joined

    def _relative(self, path: str) -> str:
        root = self._config.rootpath
        return self._redactor.text(str(Path(path).relative_to(root)) if Path(path).is_relative_to(root) else path)

    def _take_in(self, report: Report, name: str) -> None:
        try:
            found: Any = json.loads((self.folder / f"{name}.json").read_bytes())
        except (OSError, ValueError):
            return
        if isinstance(found, dict):
            report[name] = found  # type: ignore[literal-required]
