"""Which check of a suite turns red on which broken variant of its subject.

The folders `backends`, `lite_clients` and `editor_clients` hold the broken variants of a suite (broken.py), what was measured
(kills.json: variant -> the checks that turn red) and how a case gets its variant (matrix.py). `python -m
tests.miniatures.FOLDER.matrix [VARIANT...]` measures the table anew, or its lines of some variants (minutes). This module is what
the three share.

Each matrix.py is a plugin of pytest: every case of the suite becomes one case per variant, or of all those pairs the ones that
MATRIX_PAIRS names, a JSON file {variant: [check, ...]}. What turned red is written to MATRIX_RESULTS in the same form.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.suite_run import NoTraces, forked_pytest

ROOT = Path(__file__).resolve().parents[2]
#: The name that stands for the subject as it is, without a mistake.
FINE = "reference"

Pairs = Mapping[str, list[str]]
Found = dict[str, list[str]]


@dataclass(frozen=True)
class Table:
    """The measured table of a folder of miniatures, and the suite that it is about.

    `variants` names all broken variants; `tried` gives the checks to try for a variant (default: every check).
    """

    folder: str
    variants: Iterable[str]
    tried: Callable[[str], list[str]] | None = None
    options: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        """Where the table is kept."""
        return ROOT / "tests" / "miniatures" / self.folder / "kills.json"

    @property
    def suite(self) -> Path:
        """The suite whose checks are measured."""
        return ROOT / "suites" / self.folder.removesuffix("s")

    def read(self) -> Found:
        """Return the recorded table: variant -> the checks that turn red."""
        found: Found = json.loads(self.file.read_text())
        return found

    def must_be_whole(self, checks: set[str]) -> None:
        """Fail unless every variant turns a check red and every check, of those of the suite, is turned red by one."""
        table = self.read()
        for variant, red in table.items():
            print(f"{variant:34} {', '.join(red[:3])}" + (f" and {len(red) - 3} more" if len(red) > 3 else ""))
        every = {check for red in table.values() for check in red}
        again = f"measure the table again: python -m tests.miniatures.{self.folder}.matrix"
        assert sorted(set(self.variants) - set(table)) == [], f"these variants turn no check red; {again}"
        assert sorted(checks - every) == [], f"these checks find no variant; {again}"
        assert sorted(every - checks) == [], f"the suite has no such checks; {again}"

    def run(self, pairs: Pairs | None, folder: Path, *options: str, only: Iterable[str] = ()) -> Found:
        """Run the pairs (None: all pairs of the variants `only`) and return what turned red.

        Raises CalledProcessError when pytest itself fails.
        """
        results = folder / "results.json"
        environ = {"MATRIX_RESULTS": str(results), "MATRIX_ONLY": ",".join(only)}
        if pairs is not None:
            (folder / "pairs.json").write_text(json.dumps(pairs))
            environ["MATRIX_PAIRS"] = str(folder / "pairs.json")
        given = [str(self.suite), "--rootdir", str(ROOT), "-p", f"tests.miniatures.{self.folder}.matrix"]
        given += ["--tb=no", "--no-header", "--report", str(folder / "report"), "--basetemp", str(folder / "tmp")]
        done = forked_pytest([*given, *self.options, *options], **environ)
        if done.returncode not in (0, 1):
            raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout[-3000:], done.stderr[-3000:])
        found: Found = json.loads(results.read_text())
        return found

    def measure(self, names: list[str]) -> int:
        """Measure the table anew, or its lines of some variants, and write it; return the exit status."""
        variants = list(self.variants)
        if unknown := [name for name in names if name not in variants]:
            print(f"There is no variant {unknown[0]}.")
            return 2
        wanted = [FINE, *(names or variants)]
        pairs = None if self.tried is None else {name: self.tried(name) for name in wanted}
        with tempfile.TemporaryDirectory() as folder:
            found = self.run(pairs, Path(folder), only=wanted)
        if FINE in found:
            print("The subject without a mistake does not pass:", *found[FINE], sep="\n    ")
            return 1
        kept = self.read() if names and self.file.exists() else {}
        kept = {name: checks for name, checks in kept.items() if name in variants and name not in names}
        self.file.write_text(json.dumps(dict(sorted({**kept, **found}.items())), indent=1) + "\n")
        survivors = [name for name in names or variants if name not in found]
        print(f"{len(found)} variants turn a check red. Not found by any check: {', '.join(survivors) or 'none'}.")
        return 1 if survivors else 0


def cover(kills: Pairs) -> Found:
    """Choose pairs so that every check and every variant is in one.

    Each check goes to the variant that the fewest checks find; a variant that is left, to the check that finds the most.
    """
    chosen: dict[str, set[str]] = {}
    finders = {
        check: [variant for variant, checks in kills.items() if check in checks] for red in kills.values() for check in red
    }
    for check, found in sorted(finders.items()):
        chosen.setdefault(min(found, key=lambda variant: (len(kills[variant]), variant)), set()).add(check)
    for variant, checks in kills.items():
        if variant not in chosen and checks:
            chosen[variant] = {max(checks, key=lambda check: (len(finders[check]), check))}
    return {variant: sorted(checks) for variant, checks in sorted(chosen.items())}


def sample(checks: Iterable[str]) -> list[str]:
    """Return a check of each module."""
    return sorted({check.partition("::")[0]: check for check in sorted(checks, reverse=True)}.values())


class Matrix(NoTraces):
    """The hooks of one run: every case that uses `fixture` gets the variants by way of its parameter `parameter`.

    A check is named `module::function[parameters]`.
    """

    fixture = ""
    parameter = ""

    def __init__(self, variants: Iterable[str]) -> None:
        self.pairs: Found | None = None
        if "MATRIX_PAIRS" in os.environ:
            self.pairs = json.loads(Path(os.environ["MATRIX_PAIRS"]).read_text())
        only = os.environ.get("MATRIX_ONLY")
        self.names = list(self.pairs or (only.split(",") if only else (FINE, *variants)))
        self.red: dict[str, set[str]] = {}

    def subject(self, name: str) -> object:
        """Return what the parameter is for a variant."""
        raise NotImplementedError

    def may_be_wanted(self, metafunc: pytest.Metafunc, variant: str) -> bool:
        """Return False where no pair has a case of this function with the variant: there are a hundred variants."""
        if self.pairs is None:
            return True
        check = f"{metafunc.module.__name__.rpartition('.')[2]}::{metafunc.function.__name__}"
        return any(each.partition("[")[0] == check for each in self.pairs[variant])

    def checks_of(self, item: pytest.Item) -> set[str]:
        """Return the names by which pairs may call the check of a case."""
        return {check_name(item.nodeid)[0]}

    def check_of(self, report: pytest.TestReport) -> str:
        """Return the name that the table has for the check of a case."""
        return check_name(report.nodeid)[0]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give every case its variants."""
        if self.fixture in metafunc.fixturenames:
            names = [name for name in self.names if self.may_be_wanted(metafunc, name)]
            metafunc.parametrize(self.parameter, [self.subject(name) for name in names], ids=[f"~{name}~" for name in names])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the pairs that were not asked for; order by variant, since a subject may serve several cases."""
        items[:] = [item for item in items if "~" in item.nodeid]
        if self.pairs is not None:
            items[:] = [item for item in items if self.checks_of(item) & set(self.pairs[check_name(item.nodeid)[1]])]
        items.sort(key=lambda item: self.names.index(check_name(item.nodeid)[1]))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Pass over a case whose check is red already: a check with several cases needs one."""
        if not self.checks_of(item) & self.red.get(check_name(item.nodeid)[1], set()):
            return None
        item.session._setupstate.teardown_exact(nextitem)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take down what turned red by itself: where a set-up fails, no check has found anything."""
        if report.failed:
            check, variant = check_name(report.nodeid)
            self.red.setdefault(variant, set()).add(
                self.check_of(report) if report.when == "call" else f"{report.when} of {check}"
            )

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write it all."""
        if not hasattr(session.config, "workerinput"):
            found = {variant: sorted(checks) for variant, checks in sorted(self.red.items())}
            Path(os.environ["MATRIX_RESULTS"]).write_text(json.dumps(found, indent=1) + "\n")


def check_name(nodeid: str) -> tuple[str, str]:
    """Split the id of a case into the check and its variant."""
    path, _, name = nodeid.partition("::")
    function, _, parameters = name.removesuffix("]").partition("[")
    before, _, rest = parameters.partition("~")
    variant, _, after = rest.partition("~")
    others = "-".join(filter(None, (before.removesuffix("-"), after.removeprefix("-"))))
    return f"{Path(path).stem}::{function}" + (f"[{others}]" if others else ""), variant
