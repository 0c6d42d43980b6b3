"""Plant the classes of defects into the three proxies, run the suite on each, and print which case names each class.

    python -m tests.strength.defects [--pairs] [--proxy NAME]... [--defect NAME[+NAME]...]... [--app-server SUBJECT] [--chosen]

Each `--defect` is a run of its own; names that are joined by + are planted together, and `all` is every class. The default is a
run for each class, with `--pairs` also one for each pair of classes. `--chosen` runs only the chosen cases of the planted
classes. The status is 1 if a class is not named.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.strength.defects.table import ABLE, DEFECTS, DIALECTS, PROXIES, Defect, command
from tests.support.suite_run import run_elsewhere

Case = tuple[str, str]


def failures(proxy: str, planted: tuple[Defect, ...], app_server: str, chosen: bool | str) -> list[Case]:
    """Run the suite on a proxy with these defects; return the failed cases with their messages.

    `chosen` takes the chosen cases of the defects (True), all (False), or those of an expression for pytest's -k.
    """
    jobs = "4" if chosen is False else "1"
    if isinstance(chosen, bool):
        chosen = cases(planted) if chosen else "not test_tool_calls"
    able = f"tool_calls = {json.dumps(DIALECTS)}\n"
    able += "" if proxy == "reference" else f"capabilities = {json.dumps(ABLE)}\n"
    found = run(proxy, command(proxy, planted), chosen, app_server, able, jobs)
    return [(case["id"], f"{case['message']}\n{case['details']}") for case in found if case["outcome"] == "failed"]


def run(
    proxy: str, words: list[str], chosen: str, app_server: str = "fake", able: str = "", jobs: str = "1"
) -> list[dict[str, Any]]:
    """Run the cases of works-on-0.92 that `chosen` (pytest's -k) takes on a proxy; return them as the report has them.

    pytest runs in a fork of this process, which has loaded the library.

    `able` is more of the proxy's table in the configuration, `jobs` the number of cases at a time.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        line = json.dumps(shlex.join(words))
        (folder / "pyproject.toml").write_text(f"[tool.codex-replay.proxy.{proxy}]\ncommand = {line}\n{able}", encoding="utf-8")
        options = [f"--proxy={proxy}", "--profile=works-on-0.92", "--app-server", app_server, "--report=contract", "-k", chosen]
        done = run_elsewhere(folder, ["proxy"], *options, *(["-n", jobs] if jobs != "1" else []))
        report = folder / "contract" / "report.json"
        if done.returncode not in (0, 1) or not report.exists():
            raise SystemExit(f"pytest {shlex.join(done.args)} ended with status {done.returncode}:\n{done.stdout[-4000:]}")
        found: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["cases"]
        return found


def cases(planted: tuple[Defect, ...]) -> str:
    """Return an expression for the chosen cases of these classes."""
    return " or ".join(f"({defect.case})" for defect in planted)


def named_by(defect: Defect, failed: list[Case]) -> list[str]:
    """Return the cases whose message names the class."""
    return [case for case, message in failed if re.search(defect.says, message)]


def together(names: str) -> tuple[Defect, ...]:
    """Return the classes that are planted together."""
    wanted = [defect.name for defect in DEFECTS] if names == "all" else names.split("+")
    if unknown := set(wanted) - {defect.name for defect in DEFECTS}:
        raise argparse.ArgumentTypeError(
            f"there is no class {', '.join(sorted(unknown))}; there are {', '.join(each.name for each in DEFECTS)}, and all"
        )
    return tuple(defect for defect in DEFECTS if defect.name in wanted)


def main(argv: list[str]) -> int:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m tests.strength.defects")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--chosen", action="store_true")
    parser.add_argument("--proxy", action="append", choices=PROXIES)
    parser.add_argument("--defect", action="append", type=together)
    parser.add_argument("--app-server", default="fake")
    given = parser.parse_args(argv)
    sets: list[tuple[Defect, ...]] = given.defect or [(defect,) for defect in DEFECTS]
    if given.pairs:
        sets += itertools.combinations(dict.fromkeys(defect for each in sets for defect in each), 2)
    missed = 0
    for proxy in given.proxy or PROXIES:
        for planted in sets:
            failed = failures(proxy, planted, given.app_server, given.chosen)
            for defect in planted:
                named = named_by(defect, failed)
                missed += not named
                others = [other.name for other in planted if other is not defect]
                beside = f" with {others[0]}" if len(others) == 1 else f" with {len(others)} more" if others else ""
                told = f"named by {len(named)} of {len(failed)} failed cases, as {named[0]}" if named else "NOT NAMED"
                instead = "" if named else f" ({len(failed)} failed: {', '.join(case for case, _ in failed[:4])})"
                print(f"{proxy:10} {defect.name + beside:36} {told}{instead}", flush=True)
    print(f"{missed} classes not named." if missed else "Every class is named.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
