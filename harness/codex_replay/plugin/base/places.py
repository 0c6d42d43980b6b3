"""The folders of the suites in this package, the names of their cases, and the file of all workers of a run."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

#: The configuration that `codex-replay run` gives to installed suites.
PACKAGED = Path(__file__).with_name("packaged.ini")

#: The pytest plugin of the suites, as `-p` takes it.
SUITES_PLUGIN = "codex_replay.suites"


@cache
def installed_suites() -> Path:
    """Return the folder of the suites that came with this package: from its wheel, or from its checkout."""
    package = Path(__file__).resolve().parents[2]
    packaged = package / "packaged" / "suites"
    return packaged if packaged.is_dir() else package.parent.parent / "suites"


def installed_id(path: Path, root: Path) -> str | None:
    """Return `suites/SUITE/MODULE` for a module of an installed suite to which pytest would give another name; None for any other
    module.

    pytest names a module outside the root of the run relative to its argument, so the name would be empty. If the module is in a
    virtual environment below the root, pytest names it by its path there, which does not show its suite.
    """
    suites = installed_suites()
    if not path.is_relative_to(suites):
        return None
    name = Path("suites") / path.relative_to(suites)
    return None if path == root / name else name.as_posix()


def place_of(name: str, root: Path) -> Path:
    """Return the path of the module that a node id begins with; `root` is the root folder of the run."""
    path = root / name
    installed = installed_suites().parent / name
    return installed if name.startswith("suites/") and not path.exists() and installed.exists() else path


def shared_file(config: pytest.Config, factory: pytest.TempPathFactory, name: str) -> Path:
    """Return a path in the temporary folder of the run, the same in all workers of pytest-xdist."""
    base = factory.getbasetemp()
    return (base.parent if hasattr(config, "workerinput") else base) / name
