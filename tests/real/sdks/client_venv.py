"""An environment for each real client: made on demand from a requirement file with hashes, kept under .venv-clients/.

With the standard library's venv and pip, and npm: what a clean machine has, with the certificates that it trusts.

The clients are no dependency of ours, and two versions of one package cannot live side by side.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CLIENTS = sorted(path.stem for path in (HERE / "clients").glob("*.txt"))


def python_with(name: str) -> str:
    """Return the Python of the environment for `clients/NAME.txt`, made if it is not there or not of this file."""
    wanted = HERE / "clients" / f"{name}.txt"
    tag = f"{sys.version_info.major}.{sys.version_info.minor} {hashlib.sha256(wanted.read_bytes()).hexdigest()}"
    folder = ROOT / ".venv-clients" / name
    python, stamp = folder / "bin" / "python", folder / "made-of"
    with _locked(name):
        if stamp.exists() and stamp.read_text() == tag and python.exists():
            return str(python)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, stdin=subprocess.DEVNULL)
        argv = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
            "--no-deps",
            "-r",
            str(wanted),
        ]
        _fetch(argv, f"The environment for {name} could not be made", env={**os.environ, "PIP_NO_INPUT": "1"})
        stamp.write_text(tag)
    return str(python)


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    """Let one process at a time make an environment: the workers of a run share it."""
    (ROOT / ".venv-clients").mkdir(exist_ok=True)
    with open(ROOT / ".venv-clients" / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(argv: list[str], failed: str, **how: Any) -> None:
    """Run a command that downloads, again if it fails: a registry may be busy. Raises `RuntimeError` at the third failure."""
    for wait in (2, 5, None):
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, **how)
        if done.returncode == 0:
            return
        if wait is not None:
            time.sleep(wait)
    raise RuntimeError(f"{failed}, at the third try neither: {done.stderr[-500:]}")


def node_modules(name: str) -> Path:
    """Return the folder made by `npm ci` of `clients/NAME/package-lock.json`, made if it is not there or not of this lock.

    No script of a package is run, and no optional dependency fetched (a client may bring a whole Codex that way).
    """
    wanted = HERE / "clients" / name
    tag = hashlib.sha256((wanted / "package-lock.json").read_bytes()).hexdigest()
    folder = ROOT / ".venv-clients" / name
    stamp = folder / "made-of"
    with _locked(name):
        if stamp.exists() and stamp.read_text() == tag:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(wanted / file, folder)
        argv = ["npm", "ci", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"]
        _fetch(argv, f"The packages for {name} could not be installed", cwd=folder)
        stamp.write_text(tag)
    return folder
