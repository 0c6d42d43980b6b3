"""Which check of the lite client suite sees which broken client.

    python tests/miniatures/lite_clients/matrix.py [VARIANT...]     tries every check on every variant, or on these, and
                                                                    writes what it sees into kills.json (minutes)

This module is a pytest plugin as well (`-p matrix`): every case of the suite then becomes one case per variant, or those pairs
that LITE_PAIRS names, a JSON file {variant: [check, ...]}; what turned red is written to LITE_RESULTS in the same form. The
reference is loaded once and forked for each run, which is twenty times faster than starting it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from codex_replay.reference.lite_client import __main__ as program

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT))

from tests.support.forked import fork  # noqa: E402 - found by the line above

KILLS = HERE / "kills.json"
FINE = "reference"
#: Variants that never end, and the seconds after which that is certain.
ENDLESS = {"waits-for-ever": 3.0}


def table() -> dict[str, list[str]]:
    """The recorded table: variant -> the checks that turn red."""
    found: dict[str, list[str]] = json.loads(KILLS.read_text())
    return found


def cover(kills: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Choose pairs so that every check and every variant is in one: each check by the variant that the fewest checks see."""
    chosen: dict[str, set[str]] = {}
    for check in sorted({check for checks in kills.values() for check in checks}):
        killers = [variant for variant, checks in kills.items() if check in checks]
        chosen.setdefault(min(killers, key=lambda variant: (len(kills[variant]), variant)), set()).add(check)
    for variant, checks in kills.items():
        if variant not in chosen and checks:
            chosen[variant] = {checks[0]}
    return {variant: sorted(checks) for variant, checks in sorted(chosen.items())}


def run_pytest(pairs: Mapping[str, list[str]] | None, folder: Path, *more: str) -> dict[str, list[str]]:
    """Run the pairs (None: all of them) and return what turned red; raises CalledProcessError when pytest itself fails."""
    env = {**os.environ, "PYTHONPATH": str(HERE), "LITE_RESULTS": str(folder / "results.json")}
    if pairs is not None:
        (folder / "pairs.json").write_text(json.dumps(pairs))
        env["LITE_PAIRS"] = str(folder / "pairs.json")
    options = ["-p", "matrix", "-p", "no:cacheprovider", "-q", "--tb=no", "--no-header", "-o", "addopts=-p codex_replay.suites"]
    options += ["--report", str(folder / "report"), "--basetemp", str(folder / "tmp"), "--rootdir", str(ROOT)]
    argv = [sys.executable, "-m", "pytest", str(ROOT / "suites" / "lite_client"), "--no-early-stop", *options, *more]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise subprocess.CalledProcessError(done.returncode, argv, done.stdout[-3000:], done.stderr[-3000:])
    found: dict[str, list[str]] = json.loads((folder / "results.json").read_text())
    return found


# -- the plugin --------------------------------------------------------------------------------------------------------------


def check_name(nodeid: str) -> tuple[str, str]:
    """Split the id of a case into the check and its variant."""
    path, _, name = nodeid.partition("::")
    function, _, parameters = name.removesuffix("]").partition("[")
    variant, _, rest = parameters.partition("~")
    return f"{Path(path).stem}::{function}" + (f"[{rest.removeprefix('-')}]" if rest else ""), variant


class Matrix:
    """The hooks of one run."""

    def __init__(self) -> None:
        sys.path.insert(0, str(HERE))
        import broken

        self.pairs: dict[str, list[str]] | None = None
        if "LITE_PAIRS" in os.environ:
            self.pairs = json.loads(Path(os.environ["LITE_PAIRS"]).read_text())
        only = os.environ.get("LITE_ONLY")
        self.only = only.split(",") if only else [FINE, *broken.VARIANTS]
        self.red: dict[str, list[str]] = {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give every case its variants."""
        if "lite_client" in metafunc.fixturenames:
            names = list(self.pairs or self.only)
            if self.pairs is not None:  # of each check only the pairs that may be wanted: there are a hundred variants
                check = f"{metafunc.module.__name__.rpartition('.')[2]}::{metafunc.function.__name__}"
                names = [name for name in names if any(each.partition("[")[0] == check for each in self.pairs[name])]
            metafunc.parametrize("lite_client_command", [(name,) for name in names], ids=[f"{name}~" for name in names])

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the pairs that were not asked for."""
        if self.pairs is not None:
            wanted = {(check, variant) for variant, checks in self.pairs.items() for check in checks}
            items[:] = [item for item in items if check_name(item.nodeid) in wanted]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take down what turned red."""
        if report.failed:
            check, variant = check_name(report.nodeid)
            self.red.setdefault(variant, []).append(check)

    def pytest_sessionfinish(self) -> None:
        """Write it all."""
        found = {variant: sorted(set(checks)) for variant, checks in sorted(self.red.items())}
        Path(os.environ["LITE_RESULTS"]).write_text(json.dumps(found, indent=1) + "\n")


def execute(argv: list[str], env: Mapping[str, str], cwd: str, seconds: float) -> tuple[int | None, bytes, str]:
    """Do what `LiteClient.execute` does, for `[variant, prompt]`, in a fork of this process."""
    import broken

    def main() -> int:
        if argv[0] == FINE:
            return program.main(argv[1:])
        return broken.main(argv)

    pipe = subprocess.PIPE
    with fork(main, env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe) as process:
        try:
            stdout, stderr = process.communicate(timeout=ENDLESS.get(argv[0], seconds))
            status = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, stderr = process.communicate()
            status = None
    return status, stdout, stderr.decode("utf-8", "replace").rstrip("\n")


@pytest.fixture(autouse=True)
def _forked(monkeypatch: pytest.MonkeyPatch) -> None:
    from codex_replay.plugin.lite_client.fixture import LiteClient

    monkeypatch.setattr(LiteClient, "execute", staticmethod(execute))


def pytest_configure(config: pytest.Config) -> None:
    """Bring in the hooks."""
    config.pluginmanager.register(Matrix(), "lite-client-matrix")


def main(argv: list[str]) -> int:
    """Record the table, or the lines of some variants."""
    import tempfile

    import broken

    unknown = [name for name in argv if name not in broken.VARIANTS]
    if unknown:
        print(f"There is no variant {unknown[0]}.")
        return 2
    if argv:
        os.environ["LITE_ONLY"] = ",".join([FINE, *argv])
    with tempfile.TemporaryDirectory() as folder:
        found = run_pytest(None, Path(folder))
    if FINE in found:
        print("The reference itself does not pass:", *found[FINE], sep="\n    ")
        return 1
    kept = table() if argv and KILLS.exists() else {}
    kept = {name: checks for name, checks in kept.items() if name in broken.VARIANTS and name not in argv}
    KILLS.write_text(json.dumps(dict(sorted({**kept, **found}.items())), indent=1) + "\n")
    survivors = [name for name in argv or broken.VARIANTS if name not in found]
    print(f"{len(found)} variants are seen; no check sees {', '.join(survivors) or 'none'}.")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
