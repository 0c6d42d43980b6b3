"""Which check of the editor client suite sees which broken editor.

    python tests/miniatures/editor_clients/matrix.py [VARIANT...]    tries on every variant, or on these, the modules that ought
                                                                     to see it, and writes what turns red into kills.json

This module is a pytest plugin as well (`-p matrix`): every case of the suite becomes one case a variant, of those pairs that
EDITOR_PAIRS names, a JSON file {variant: [check or module, ...]}; what turned red is written to EDITOR_RESULTS in the same form.
A check is the id in its `spec` mark.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SUITE = ROOT / "suites" / "editor_client"
KILLS = HERE / "kills.json"
FINE = "reference"
#: How long a check waits for a broken client, in seconds: long enough for every one that is not.
WAIT = "3"


def table() -> dict[str, list[str]]:
    """The recorded table: variant -> the checks that turn red."""
    found: dict[str, list[str]] = json.loads(KILLS.read_text())
    return found


def cover(kills: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Choose pairs so that every check and every variant is in one.

    Each check goes to the variant that the fewest checks see; a variant that is left, to the check that sees the most.
    """
    chosen: dict[str, set[str]] = {}
    for check in sorted({check for checks in kills.values() for check in checks}):
        killers = [variant for variant, checks in kills.items() if check in checks]
        chosen.setdefault(min(killers, key=lambda variant: (len(kills[variant]), variant)), set()).add(check)
    for variant, checks in kills.items():
        if variant not in chosen and checks:
            chosen[variant] = {max(checks, key=lambda check: (sum(check in red for red in kills.values()), check))}
    return {variant: sorted(checks) for variant, checks in sorted(chosen.items())}


def all_checks() -> set[str]:
    """The ids of all checks of the suite, from its text."""
    text = "\n".join(path.read_text() for path in sorted(SUITE.glob("test_*.py")))
    return set(re.findall(r'mark\.spec\(\s*"([a-z-]+)"', text)) | set(re.findall(r'"(fault-[a-z-]+)"', text))


def run_pytest(pairs: Mapping[str, list[str]], folder: Path, *more: str, wait: str = WAIT) -> dict[str, list[str]]:
    """Run the pairs and return what turned red; raises CalledProcessError when pytest itself fails."""
    (folder / "pairs.json").write_text(json.dumps(pairs))
    results = folder / "results.json"
    env = {**os.environ, "PYTHONPATH": str(HERE), "EDITOR_PAIRS": str(folder / "pairs.json"), "EDITOR_RESULTS": str(results)}
    options = [
        "-p",
        "matrix",
        "-p",
        "no:cacheprovider",
        "-q",
        "--tb=no",
        "--no-header",
        "-o",
        "addopts=-p codex_replay.suites",
        "--wait",
        wait,
    ]
    options += ["--report", str(folder / "report"), "--basetemp", str(folder / "tmp"), "--rootdir", str(ROOT)]
    argv = [sys.executable, "-m", "pytest", str(SUITE), "--no-early-stop", *options, *more]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise subprocess.CalledProcessError(done.returncode, argv, done.stdout[-3000:], done.stderr[-3000:])
    found: dict[str, list[str]] = json.loads(results.read_text())
    return found


# -- the plugin --------------------------------------------------------------------------------------------------------------


def variant_of(nodeid: str) -> str:
    """The variant that a case is for."""
    found = re.search(r"~(.+?)~", nodeid)
    return found[1] if found else ""


def check_of(item: pytest.Item) -> str:
    """The id of a case's check, or ""."""
    mark = item.get_closest_marker("spec")
    return str(mark.args[0]) if mark is not None else ""


class Matrix:
    """The hooks of one run."""

    def __init__(self) -> None:
        self.pairs: dict[str, list[str]] = json.loads(Path(os.environ["EDITOR_PAIRS"]).read_text())
        self.red: dict[str, set[str]] = {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give every case its variants."""
        if "editor_client" in metafunc.fixturenames:
            names = list(self.pairs)
            commands = [f"{sys.executable} {HERE / 'broken.py'} {name} {{codex}}" for name in names]
            metafunc.parametrize("editor_client_command", commands, ids=[f"~{name}~" for name in names])

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the pairs that were not asked for."""
        wanted = {(check, variant) for variant, checks in self.pairs.items() for check in checks}
        items[:] = [
            item
            for item in items
            if check_of(item)
            and wanted
            & {(check_of(item), variant_of(item.nodeid)), (item.path.stem.removeprefix("test_"), variant_of(item.nodeid))}
        ]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take down what turned red."""
        if report.failed:
            check = dict(report.user_properties).get("check", "")
            self.red.setdefault(variant_of(report.nodeid), set()).add(str(check))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write it all."""
        if not hasattr(session.config, "workerinput"):
            found = {variant: sorted(checks) for variant, checks in sorted(self.red.items())}
            Path(os.environ["EDITOR_RESULTS"]).write_text(json.dumps(found, indent=1) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Bring in the hooks."""
    config.pluginmanager.register(Matrix(), "editor-client-matrix")


def main(argv: list[str]) -> int:
    """Record the table, or the lines of some variants."""
    import broken

    unknown = [name for name in argv if name not in broken.VARIANTS]
    if unknown:
        print(f"There is no variant {unknown[0]}.")
        return 2
    names = argv or list(broken.VARIANTS)
    every = sorted({module for modules in broken.MODULES.values() for module in modules})
    with tempfile.TemporaryDirectory() as folder:
        found = run_pytest({FINE: every, **{name: list(broken.MODULES[name]) for name in names}}, Path(folder), "-n", "2")
    if FINE in found:
        print("The reference itself does not pass:", *found[FINE], sep="\n    ")
        return 1
    kept = table() if argv and KILLS.exists() else {}
    kept = {name: checks for name, checks in kept.items() if name in broken.VARIANTS and name not in argv}
    kills = dict(sorted({**kept, **found}.items()))
    KILLS.write_text(json.dumps(kills, indent=1) + "\n")
    survivors = [name for name in names if name not in found]
    idle = sorted(all_checks() - {check for checks in kills.values() for check in checks})
    print(f"{len(kills)} variants are seen. Seen by no check: {', '.join(survivors) or 'none'}.")
    print(f"Checks that see nothing: {', '.join(idle) or 'none'}.")
    return 1 if survivors or idle else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
