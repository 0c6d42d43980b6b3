"""Environments that hold the locked packages and the wheel alone, built from the sdist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: The most used pytest plugins.
GUESTS = Path(__file__).with_name("guests.txt")
INITIALIZE = '{"id":1,"method":"initialize","params":{"clientInfo":{"name":"me","version":"1"}}}\n'
#: A test of another project, with our fixtures; `%r` takes what the client of the app-server writes.
FOREIGN_TEST = """
import json, subprocess, urllib.request

def test_the_app_server(fake_codex):
    fake_codex.script(["Hello."])
    done = subprocess.run(fake_codex.command, input=%r, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["result"]["userAgent"]
    assert fake_codex.methods == ["initialize"]

def test_the_backend(codex_backend):
    codex_backend.script(["Hello."])
    body = {"model": "gpt-5.2", "input": "Hi", "stream": False}
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(codex_backend.url + "/v1/responses", json.dumps(body).encode(), headers)
    answer = json.load(urllib.request.urlopen(request, timeout=60))
    assert answer["output"][0]["content"][0]["text"] == "Hello."
    assert codex_backend.requests[0].body["input"] == "Hi"
"""


def run(*argv: str | Path, cwd: Path, env: dict[str, str] | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end (30 minutes at most), stdin empty unless `input` is given."""
    given = {"input": more["input"]} if "input" in more else {"stdin": subprocess.DEVNULL}
    return subprocess.run([*map(str, argv)], cwd=cwd, env=env, capture_output=True, text=True, timeout=1800, check=False, **given)  # type: ignore[call-overload,no-any-return]


def good(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, f"{done.args}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


class Installed:
    """An environment in which nothing is but the locked packages and the wheel."""

    def __init__(self, venv: Path, home: Path) -> None:
        self.venv = venv
        self.package = next(venv.glob("lib/python*/site-packages"))
        self.env = {"PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8"}

    def __call__(self, *argv: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
        return run(self.venv / "bin" / argv[0], *argv[1:], cwd=cwd, env=self.env, **more)


def build_wheel(folder: Path) -> Path:
    """Build the sdist, and the wheel from what the sdist holds; return the wheel."""
    good(run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder / "sdist", cwd=ROOT))
    (archive,) = (folder / "sdist").glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    good(run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "wheel", cwd=source))
    (wheel,) = (folder / "wheel").glob("*.whl")
    return wheel


def install(python: str, wheel: Path, folder: Path) -> Installed:
    """Install the locked packages and the wheel for an interpreter, in an environment below `folder`."""
    venv = folder / "venv"
    good(run(python, "-m", "venv", venv, cwd=folder))
    pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for _ in range(3):  # the index may be slow to answer
        done = run(*pip, "--require-hashes", "-r", ROOT / "requirements.lock", cwd=folder)
        if done.returncode == 0:
            break
    good(done)
    good(run(*pip, "--no-deps", wheel, cwd=folder))
    (folder / "home").mkdir()
    return Installed(venv, folder / "home")


def install_beside_guests(wheel: Path, folder: Path) -> Installed:
    """Install the wheel beside the most used pytest plugins, in an environment below `folder`."""
    # As --constraint pip takes no hashes: the versions of the lock alone.
    pins = re.findall(r"^([\w.-]+==[\w.]+)", (ROOT / "requirements.lock").read_text(), re.M)
    (folder / "lock.txt").write_text("\n".join(pins) + "\n")
    venv = folder / "venv"
    good(run(sys.executable, "-m", "venv", venv, cwd=folder))
    pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    words = [*pip, "-c", folder / "lock.txt", "-r", GUESTS, wheel]
    for _ in range(3):  # the index may be slow to answer
        done = run(*words, cwd=folder)
        if done.returncode == 0:
            break
    good(done)
    (folder / "home").mkdir()
    return Installed(venv, folder / "home")
