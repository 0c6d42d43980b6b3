"""The wheel on every declared Python version that is on this machine: the fixtures, the fakes and one suite (`make pythons`).

An interpreter is `python3.X` on PATH, or pyenv's. The last lines name the versions that ran, and those that are not here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.wheel.environment import FOREIGN_TEST, INITIALIZE, ROOT, good, install

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECLARED = [found[1] for line in PROJECT["classifiers"] if (found := re.fullmatch(r".*:: Python :: (3\.\d+)", line))]


def interpreter(version: str) -> str | None:
    """Return an interpreter of this version; None if this machine has none. A shim that runs nothing does not count."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places = [shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python{version}")]
    for place in places:
        if place and subprocess.run([place, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            return str(place)
    return None


def test_this_version_is_declared() -> None:
    assert ".".join(map(str, sys.version_info[:2])) in DECLARED


@pytest.mark.parametrize("version", DECLARED)
def test_the_wheel_works_on(version: str, wheel: Path, tmp_path: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    installed = install(python, wheel, tmp_path)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "test_mine.py").write_text(FOREIGN_TEST % INITIALIZE)
    out = good(installed("pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-W", "error", cwd=tmp_path / "project"))
    assert "2 passed" in out
    good(installed("codex-replay", "doctor", cwd=tmp_path / "project"))
    out = good(installed("codex-replay", "run", "app_server", "-n", "2", cwd=tmp_path / "project"))
    assert "VERIFIED" in out
    shown = good(installed("python", "-c", "import sys; print(sys.version)", cwd=tmp_path))
    assert shown.startswith(f"{version}.")
