"""Find the installed suites, the names of their cases, and a file path that all workers of a run share."""

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
    """Return the folder of the suites that codex-replay contains: in the installed wheel, or in the checkout."""
    package = Path(__file__).resolve().parents[2]
    packaged = package / "packaged" / "suites"
    return packaged if packaged.is_dir() else package.parent.parent / "suites"


def installed_id(path: Path, root: Path) -> str | None:
    """Return `suites/SUITE/MODULE` as the name of a module of an installed suite.

    Return None if pytest itself gives the module a usable name.

    For a module outside the root of the run, pytest makes the name relative to the command line argument; the name would be
    empty. If the virtual environment is inside the root folder, pytest names a module by its path in the environment, which
    does not show the suite.
    """
    suites = installed_suites()
    if not path.is_relative_to(suites):
        return None
    name = Path("suites") / path.relative_to(suites)
    return None if path == root / name else name.as_posix()


def place_of(name: str, root: Path) -> Path:
    """Return the path of the module at the start of a node id; `root` is the root folder of the run."""
    path = root / name
    installed = installed_suites().parent / name
    return installed if name.startswith("suites/") and not path.exists() and installed.exists() else path


def shared_file(config: pytest.Config, factory: pytest.TempPathFactory, name: str) -> Path:
    """Return a path in the temporary folder of the run; all workers of pytest-xdist get the same path."""
    base = factory.getbasetemp()
    return (base.parent if hasattr(config, "workerinput") else base) / name
