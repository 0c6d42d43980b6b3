"""What all tests share: how hypothesis works here, and the order in which tests start.

Nothing asserts on wall time, so neither does hypothesis; in CI its examples are the same in every run, so that a red gate can be
repeated.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.suite_run import LEAN, fork_pytester, prepare_pytester

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("any machine"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CODEX_REPLAY_CI") else "any machine")


HERE = Path(__file__).parent
#: No version that the user of this machine has added takes part in a test.
os.environ["CODEX_REPLAY_DATA"] = str(HERE / "data" / "no-added-versions")
#: Folders whose tests run whole suites. Each worker starts with its share of them: a long test that starts last runs alone.
LONG = ("mutants", "plugin", "project", "strength")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let each worker begin in another folder: in a new checkout it compiles a share of the modules, and loads the others'."""
    report = yield
    worker = getattr(collector.config, "workerinput", None)
    if worker is not None and isinstance(collector, pytest.Directory):
        first = len(report.result) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        report.result = [*report.result[first:], *report.result[:first]]
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests of the long folders before all others, in each of the equal parts that xdist gives to its workers."""
    items.sort(key=lambda item: str(item.path))  # every worker must list the same, wherever it began
    folders = [HERE / name for name in LONG]
    assert all(folder.is_dir() for folder in folders), "a folder of LONG has another name"
    within = tuple(f"{folder}{os.sep}" for folder in folders)
    long = [item for item in items if str(item.path).startswith(within)]
    others = [item for item in items if not str(item.path).startswith(within)]
    workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
    items[:] = []
    for worker in range(workers):
        items += long[worker::workers]
        items += others[len(others) * worker // workers : len(others) * (worker + 1) // workers]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare what is collected from the garbage collector: every run of it would walk through 13,000 tests, in each fork too."""
    gc.disable()
    result = yield
    gc.collect()
    gc.freeze()
    gc.enable()
    return result


@pytest.fixture(autouse=True, scope="session")
def lean_children() -> Iterator[None]:
    """Start every pytest that a test starts without the plugin of hypothesis."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_ADDOPTS", LEAN)
        yield


@pytest.fixture(autouse=True)
def _suites_plugin(request: pytest.FixtureRequest) -> None:
    """Load the suites' plugin into the projects that pytester makes; the users' fixtures are tested without it."""
    prepare_pytester(request, f"-p codex_replay.suites {LEAN}")
    fork_pytester(request)
