"""An environment for each real client: made on demand from a requirement file with hashes, kept under .venv-clients/.

The clients are no dependency of ours, and two versions of one package cannot live side by side.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CLIENTS = sorted(path.stem for path in (HERE / "clients").glob("*.txt"))


def python_with(name: str) -> str:
    """Return the Python of the environment for `clients/NAME.txt`, made if it is not there or not of this file."""
    wanted = HERE / "clients" / f"{name}.txt"
    tag = f"{sys.version_info.major}.{sys.version_info.minor} {hashlib.sha256(wanted.read_bytes()).hexdigest()}"
    folder = ROOT / ".venv-clients" / name
    python, stamp = folder / "bin" / "python", folder / "made-of"
    if stamp.exists() and stamp.read_text() == tag and python.exists():
        return str(python)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    argv = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", str(wanted)]
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "PIP_NO_INPUT": "1"})
    if done.returncode:
        raise RuntimeError(f"The environment for {name} could not be made: {done.stderr[-500:]}")
    stamp.write_text(tag)
    return str(python)


def node_modules(name: str) -> Path:
    """Return the folder made by `npm ci` of `clients/NAME/package-lock.json`, made if it is not there or not of this lock.

    No script of a package is run, and no optional dependency fetched (a client may bring a whole Codex that way).
    """
    wanted = HERE / "clients" / name
    tag = hashlib.sha256((wanted / "package-lock.json").read_bytes()).hexdigest()
    folder = ROOT / ".venv-clients" / name
    stamp = folder / "made-of"
    if stamp.exists() and stamp.read_text() == tag:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copy(wanted / file, folder)
    argv = ["npm", "ci", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"]
    done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"The packages for {name} could not be installed: {done.stderr[-500:]}")
    stamp.write_text(tag)
    return folder
