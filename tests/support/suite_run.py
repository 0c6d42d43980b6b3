"""How tests run a suite as its users do: pytest in a process of its own, without this project's options for its own tests."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.metadata import PathDistribution, distributions
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codex_replay.plugin.base.places import PACKAGED
from codex_replay.shell.process import subject
from tests.support.forked import fork, fork_xdist_workers

ROOT = Path(__file__).resolve().parents[2]

#: The command; what to run, on what and where the report goes follow. A broken subject must not end a run before its check.
PYTEST = [
    *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=-p codex_replay.suites"),
    "--no-early-stop",
]
#: No project that a test makes uses this plugin, which takes three times as long to load as pytest itself.
QUICK = "-p no:hypothesispytest"
#: The suites use none of these either, which together take as long to load as pytest.
LEAN = f"{QUICK} -p no:syrupy -p no:asyncio"
#: The environment of `codex-replay run` that runs its few cases without workers, each of which would collect the whole suite.
ONE_PROCESS = {"PYTEST_ADDOPTS": f"{LEAN} -p one_process", "PYTHONPATH": str(ROOT / "tests" / "support" / "plugins")}


def run_suite(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with these options from the checkout's root; the report goes below `folder`."""
    return forked_pytest(["--report", str(folder / "report"), *options])


def forked_pytest(options: Sequence[str], **environ: str) -> subprocess.CompletedProcess[str]:
    """Run pytest as `PYTEST` does, in a fork of this process, which has loaded all of it: a start takes four times as long."""
    # What is loaded is not rewritten once more.
    argv = [*PYTEST[PYTEST.index("pytest") + 1 :], "-W", "ignore::pytest.PytestAssertRewriteWarning", *options]
    load_all()
    env = {**os.environ, **environ}
    env.pop("PYTEST_XDIST_WORKER", None)  # of the run that this test belongs to

    def main() -> int:
        forget("suites")  # the run rewrites their assertions
        return pytest.main(argv)

    with fork(main, env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(argv, process.returncode, stdout.decode(), stderr.decode())


def run_elsewhere(folder: Path, suites: Sequence[str], *options: str) -> subprocess.CompletedProcess[str]:
    """Run suites in a folder outside the checkout, as `codex-replay run` does, but in a fork of this process."""
    paths = [str(ROOT / "suites" / suite) for suite in suites]
    # What is loaded is not rewritten once more.
    argv = [*paths, "-c", str(PACKAGED), "--rootdir", str(folder), "-W", "ignore::pytest.PytestAssertRewriteWarning", *options]
    load_all()
    with fork(
        guest(folder, argv), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        printed, _ = child.communicate(timeout=3600)
    return subprocess.CompletedProcess(argv, child.returncode, printed.decode())


@cache
def load_all() -> None:
    """Import the library once: each run in this process, or in a fork, would import what it needs and rewrite its assertions."""
    importlib.import_module("http.client")
    for name in ("core", "protocol", "shell", "report", "plugin"):
        package = importlib.import_module(f"codex_replay.{name}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith(".__main__"):
                importlib.import_module(found.name)
    read_once()


def read_once() -> None:
    """Look up once, for all runs, where the source of each module is, and what the installed packages are.

    The first traceback of a process looks up the real path of every loaded module. A worker has 2,000 of them.
    """
    for name in ("jsonschema", "yaml"):
        importlib.import_module(name)
    inspect.getmodule(compile("", "no such file", "exec"))
    read = PathDistribution.read_text
    texts: dict[tuple[str, str], str | None] = {}

    def read_text(distribution: PathDistribution, filename: str) -> str | None:
        name = str(distribution._path), filename
        if name not in texts:
            texts[name] = read(distribution, filename)
        return texts[name]

    PathDistribution.read_text = read_text  # type: ignore[assignment, method-assign]
    for distribution in distributions():
        if any(each.group == "pytest11" for each in distribution.entry_points):
            assert distribution.files, distribution.metadata["Name"]


class NoTraces:
    """A plugin for a run of which only the verdicts are read: the trace of a failed case takes longer than most cases."""

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Collect no traces."""
        from codex_replay.plugin.reporting.session import SESSION

        session.config.stash[SESSION].tells = False


def forget(*packages: str) -> None:
    """Remove modules from `sys.modules`: the next import loads them again."""
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]


def checks_of(suite: str) -> set[str]:
    """Return the names of all checks of a suite, `module::function[parameters]`, as pytest lists them."""
    done = forked_pytest(["--collect-only", f"suites/{suite}"])
    done.check_returncode()
    listed = done.stdout
    return {"::".join((Path(path).stem, name)) for path, _, name in (line.partition("::") for line in listed.split("\n")) if name}


def spec_marks(suite: str) -> Iterator[tuple[str, Any]]:
    """Yield (check, its spec mark) for each function of a suite; fails where it has none, several, or no docstring."""
    for path in sorted((ROOT / "suites" / suite).glob("test_*.py")):
        for name, function in vars(importlib.import_module(f"suites.{suite}.{path.stem}")).items():
            if name.startswith("test_"):
                check = f"{path.stem}::{name}"
                specs = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "spec"]
                assert len(specs) == 1, f"{check} needs one spec mark"
                assert function.__doc__, f"{check} needs a docstring"
                yield check, specs[0]


def prepare_pytester(request: pytest.FixtureRequest, options: str) -> None:
    """Give these options to every pytest that a test starts by `pytester`."""
    if "pytester" not in request.fixturenames:
        return
    load_all()
    request.getfixturevalue("pytester")  # which forgets PYTEST_ADDOPTS
    patch = request.getfixturevalue("monkeypatch")
    patch.setenv("PYTEST_ADDOPTS", options)
    # Bytecode is stale only if the size or the second differs: a test may write its project anew within a second.
    patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    patch.setattr(sys, "dont_write_bytecode", True)


def fork_pytester(request: pytest.FixtureRequest) -> None:
    """Let `pytester`, and the reruns of its runs, start pytest in forks.

    Another program, and pytest by another command line, is a process of its own.
    """
    if "pytester" in request.fixturenames:
        pytester = request.getfixturevalue("pytester")
        start = pytester.popen

        def popen(cmdargs: Sequence[str], stdout: Any, stderr: Any, stdin: Any) -> subprocess.Popen[bytes]:
            alone = list(cmdargs[:2]) == [sys.executable, "-mpytest"]
            return forked(cmdargs, stdout, stderr) if alone else start(cmdargs, stdout, stderr, stdin)

        patch = request.getfixturevalue("monkeypatch")
        patch.setattr(pytester, "popen", popen)
        patch.setattr(subject, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": popen_of_library}))


def popen_of_library(argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program for the library; pytest, which reruns cases in a process of their own, is forked."""
    if list(argv[:3]) != [sys.executable, "-m", "pytest"]:
        return subprocess.Popen(argv, **options)
    return fork(guest(options["cwd"], argv[3:]), options.pop("env"), **options)


def forked(cmdargs: Sequence[str], stdout: Any, stderr: Any) -> subprocess.Popen[bytes]:
    """Start pytest for `pytester` in a fork of this process, which has loaded it: a start takes twice as long."""
    return fork(guest(os.getcwd(), cmdargs[2:]), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)


def guest(folder: str | Path, options: Sequence[str]) -> Callable[[], int]:
    """Return what runs pytest in a fork as in a process of its own, started in `folder`: it finds nothing of the checkout."""

    def main() -> int:
        forget("conftest", "suites", "tests", *(name for name in sys.modules if name.startswith("test_")))
        first = [str(folder), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        sys.path[:] = [*first, *(path for path in sys.path if path != str(ROOT))]
        sys.argv = ["pytest", *options]
        os.environ["PYTHONPATH"] = os.pathsep.join(first)
        warnings.resetwarnings()
        fork_xdist_workers(options)
        return pytest.main([*options])

    return main
