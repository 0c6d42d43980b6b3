"""Looks whether all that codex-replay needs is there, and knows how to mend what is not.

Strategy. A check is a function without parameters (or with the one thing it looks at) that returns a `Finding`; each looks at the
thing itself, as its user would: fake-codex is started, pytest is asked for its plugins, files are hashed. A need is one of
three: `always` (the fakes and the suites), `real` (installing and running the real Codex), `extra` (some of this project's
own proofs). Nothing is changed and nothing is fetched; the slowest check starts pytest.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.protocol import schema_files
from harness.protocol.bundle import DEFAULT_VERSION
from harness.shell.codex.cache import cache_folder, damage, list_installed, this_platform
from harness.shell.codex.errors import CodexInstallError

Need = Literal["always", "real", "extra"]
DISTRIBUTION = "codex-replay"
INSTALL_AGAIN = "install it again: pip install --force-reinstall codex-replay"
#: Seconds that a program which we start may take.
PATIENCE = 60
INITIALIZE = b'{"id":1,"method":"initialize","params":{"clientInfo":{"name":"doctor","version":"1"}}}\n'


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found: `well` or not, in a sentence `said`, and if not what to do about it (`mend`)."""

    name: str
    need: Need
    well: bool
    said: str
    mend: str | None = None


def examine(suites: Path) -> Iterator[Finding]:
    """Yield a finding for each check, as it is made; `suites` is the folder in which the installed suites should be."""
    yield _python()
    yield packages()
    yield files()
    yield bundle()
    yield suites_there(suites)
    yield fake_codex(Path(sys.executable).with_name("fake-codex"))
    yield on_path()
    yield plugin()
    for program, why in (("node", "npm needs it"), ("npm", "the real Codex is fetched with it")):
        yield _program(program, "real", why, "install Node.js, npm comes with it: https://nodejs.org")
    yield cache()
    yield codexes()
    yield _program(
        "chromium chromium-browser google-chrome", "extra", "the report page is tested in it", "install your system's chromium"
    )
    yield namespaces()


def _python() -> Finding:
    said = f"{platform.python_version()} ({sys.executable})"
    return Finding("python", "always", sys.version_info >= (3, 11), said, "use Python 3.11 or later")


def packages(distribution: str = DISTRIBUTION) -> Finding:
    """Whether every package that ours declares is installed."""
    try:
        version = importlib.metadata.version(distribution)
        required = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return Finding("packages", "always", False, f"{distribution} is not installed here.", "pip install codex-replay")
    names = [re.split(r"[^A-Za-z0-9_.-]", text)[0] for text in required if "extra ==" not in text]
    missing = [name for name in names if not _has(name)]
    if missing:
        return Finding("packages", "always", False, f"not installed: {', '.join(missing)}.", f"pip install {' '.join(missing)}")
    return Finding("packages", "always", True, f"{distribution} {version} and the {len(names)} packages that it needs")


def _has(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def files(distribution: str = DISTRIBUTION) -> Finding:
    """Whether each file of the installation is what the wheel brought."""
    try:
        listed = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        listed = []
    wrong = []
    for path in listed:
        try:
            data = Path(str(path.locate())).read_bytes()
        except OSError:
            wrong.append(f"{path} is missing")
            continue
        if path.hash is not None and _digest(path.hash.mode, data) != path.hash.value:
            wrong.append(f"{path} was changed")
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        return Finding("files", "always", False, f"{wrong[0]}{more}.", INSTALL_AGAIN)
    return Finding("files", "always", bool(listed), f"{len(listed)} files as they were installed", INSTALL_AGAIN)


def _digest(mode: str, data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.new(mode, data).digest()).decode().rstrip("=")


def bundle(version: str = DEFAULT_VERSION, folder: str | None = None) -> Finding:
    """Whether each vendored schema file has the hash that it was vendored with; `folder` stands for the version's own."""
    root = folder or schema_files.folder(version)
    try:
        table = Path(schema_files.table(version, "schema.sha256")).read_text(encoding="ascii").splitlines()
    except OSError as error:
        return Finding("bundle", "always", False, f"{error.filename}: {error.strerror}.", INSTALL_AGAIN)
    wrong = []
    for line in table:
        expected, name = line.split(maxsplit=1)
        try:
            data = schema_files.read(root, name.removeprefix("schema/"))
        except OSError:
            wrong.append(name)
            continue
        if hashlib.sha256(data).hexdigest() != expected:
            wrong.append(name)
    if wrong:
        said = f"of the {len(table)} schema files of {version}, {len(wrong)} are missing or changed: {', '.join(wrong[:3])}."
        return Finding("bundle", "always", False, said, INSTALL_AGAIN)
    return Finding("bundle", "always", True, f"{len(table)} schema files of {version}, each with its hash")


def suites_there(suites: Path) -> Finding:
    """Whether the suites and the cassettes beside them are there."""
    names = sorted(path.name for path in suites.iterdir() if (path / "__init__.py").is_file()) if suites.is_dir() else []
    recorded = sum(1 for _ in (suites.parent / "cassettes").rglob("*.ndjson"))
    said = f"{', '.join(names) or 'none'}; {recorded} cassettes ({suites.parent})"
    return Finding("suites", "always", bool(names and recorded), said, INSTALL_AGAIN)


def fake_codex(path: Path) -> Finding:
    """Whether fake-codex is at `path`, can be executed, and answers."""
    if not path.exists():
        return Finding("fake-codex", "always", False, f"there is no {path}.", INSTALL_AGAIN)
    if not os.access(path, os.X_OK):
        return Finding("fake-codex", "always", False, f"{path} is not executable.", f"chmod +x {path}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FAKE_CODEX_")}
    try:
        done = subprocess.run(
            [path, "app-server"], input=INITIALIZE, capture_output=True, timeout=PATIENCE, env=environment, check=False
        )
        answer = json.loads(done.stdout)["result"]["userAgent"]
    except OSError as error:
        return Finding("fake-codex", "always", False, f"{path} does not start: {error.strerror}.", INSTALL_AGAIN)
    except subprocess.TimeoutExpired:
        return Finding("fake-codex", "always", False, f"{path} does not answer within {PATIENCE:g} s.", INSTALL_AGAIN)
    except (ValueError, LookupError, TypeError):
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"])[-1]
        return Finding("fake-codex", "always", False, f"{path} does not answer initialize: {last}", INSTALL_AGAIN)
    return Finding("fake-codex", "always", True, f"answers as {str(answer).split(' ')[0]} ({path})")


def on_path() -> Finding:
    """Whether the shell finds this environment's fake-codex by its name."""
    own = Path(sys.executable).with_name("fake-codex")
    found = shutil.which("fake-codex")
    mend = f"activate the environment, or put {own.parent} first on PATH"
    if found is None:
        return Finding("PATH", "extra", False, "fake-codex is not on PATH; the suites find it none the less.", mend)
    if Path(found).resolve() != own.resolve():
        return Finding("PATH", "extra", False, f"fake-codex on PATH is another environment's ({found}).", mend)
    return Finding("PATH", "extra", True, f"fake-codex is {found}")


def plugin() -> Finding:
    """Whether pytest, started in the working directory, loads our plugin."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-VV"], capture_output=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return Finding("plugin", "always", False, f"pytest did not start within {PATIENCE} s.", "see what conftest.py does here")
    said = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode != 0:
        last = (said.strip().splitlines() or ["it says nothing"])[-1]
        return Finding("plugin", "always", False, f"pytest does not start here: {last}", "mend that, or try in another folder")
    if re.search(rf"^\s*{DISTRIBUTION}-\S+ at ", said, re.MULTILINE) is None:
        if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
            mend = "unset PYTEST_DISABLE_PLUGIN_AUTOLOAD, or add -p harness.plugin.hooks"
        else:
            mend = "look for `-p no:codex_replay` in this folder's pytest configuration; else " + INSTALL_AGAIN
        return Finding("plugin", "always", False, "pytest does not load it.", mend)
    return Finding("plugin", "always", True, "pytest loads it")


def _program(names: str, need: Need, why: str, mend: str) -> Finding:
    """Whether one of the programs `names` (words) is on PATH; it goes by the first."""
    candidates = names.split()
    found = next((path for name in candidates if (path := shutil.which(name)) is not None), None)
    return Finding(candidates[0], need, found is not None, found or f"not on PATH; {why}.", mend)


def cache() -> Finding:
    """Whether the folder for real Codex binaries can be written."""
    folder = cache_folder()
    there = next((place for place in (folder, *folder.parents) if place.exists()), Path("/"))
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        mend = "mend its permissions, or set CODEX_REPLAY_CACHE to another folder"
        return Finding("cache", "real", False, f"{folder} cannot be written: {error.strerror}.", mend)
    free = shutil.disk_usage(there).free
    return Finding("cache", "real", True, f"{folder}, {free / 1e9:.1f} GB free")


def codexes(wanted: str = DEFAULT_VERSION) -> Finding:
    """Whether the real Codex `wanted` is installed, and each installed version undamaged."""
    install = f"codex-replay codex install {wanted}"
    try:
        here = [it for it in list_installed() if it.triple == this_platform()[0]]
    except CodexInstallError as error:
        return Finding("codex", "real", False, str(error), "run the suites on the fakes")
    for it in here:
        folder = cache_folder() / "codex" / f"{it.version}-{it.triple}"
        if (problem := it.problem or damage(folder)) is not None:
            return Finding(
                "codex", "real", False, f"{it.version} is damaged: {problem}.", f"codex-replay codex install {it.version}"
            )
    versions = ", ".join(it.version for it in here)
    if wanted not in [it.version for it in here]:
        return Finding("codex", "real", False, f"{wanted} is not installed{f' ({versions} is)' if versions else ''}.", install)
    return Finding("codex", "real", True, versions)


def namespaces() -> Finding:
    """Whether a run can be shut off from the network, which proves it hermetic."""
    command = ["unshare", "-rn", "true"]
    try:
        well = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        well = False
    said = "`unshare -rn` works" if well else "`unshare -rn` does not work; that a run needs no network goes unproven."
    return Finding(
        "namespaces", "extra", well, said, "on Linux, allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)"
    )
