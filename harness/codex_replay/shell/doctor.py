"""Check the environment for everything that codex-replay needs, and describe a fix for each missing part.

A check is a function that returns a `DoctorFinding`. Each check acts like a user: it starts fake-codex, asks pytest for its
plugins, or hashes files. `need` says who needs a part: `always` (the fakes and the suites), `real` (installing and running
the real Codex), `extra` (some tests of this project). The checks change nothing and download nothing. The check of pytest's
plugins is the slowest check.
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

from codex_replay.protocol.schema.bundle import BundleError
from codex_replay.protocol.versions import DEFAULT
from codex_replay.shell.cassettes.file import cassettes_in
from codex_replay.shell.codex.cache import cache_folder, damage, list_installed, this_platform
from codex_replay.shell.codex.errors import CodexInstallError
from codex_replay.shell.files import version_data
from codex_replay.shell.files.archive import packed
from codex_replay.shell.files.bundle_files import load_file
from codex_replay.shell.files.folder import Folder

Need = Literal["always", "real", "extra"]
DISTRIBUTION = "codex-replay"
INSTALL_AGAIN = "install it again: pip install --force-reinstall codex-replay"
#: Seconds that a program which we start may take.
PATIENCE = 60
INITIALIZE = b'{"id":1,"method":"initialize","params":{"clientInfo":{"name":"doctor","version":"1"}}}\n'


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check of `codex-replay doctor`.

    `well` is True if the check passed. `said` is a sentence with the result. `mend` says how to fix the problem if the
    check failed.
    """

    name: str
    need: Need
    well: bool
    said: str
    mend: str | None = None


def examine(suites: Path) -> Iterator[DoctorFinding]:
    """Run the checks one after the other, and yield the finding of each.

    `suites` is the expected folder of the installed suites.
    """
    yield _python()
    yield packages()
    yield files()
    for version in version_data.packaged():
        yield bundle(version)
    yield suites_there(suites)
    yield fake_codex(Path(sys.executable).with_name("fake-codex"))
    yield on_path()
    yield plugin()
    for program, why in (("node", "required by npm"), ("npm", "downloads the real Codex")):
        yield _program(program, "real", why, "install Node.js, which includes npm: https://nodejs.org")
    yield cache()
    yield codexes()
    yield _program(
        "chromium chromium-browser google-chrome", "extra", "used to test the report page", "install your system's chromium"
    )
    yield namespaces()


def _python() -> DoctorFinding:
    message = f"{platform.python_version()} ({sys.executable})"
    return DoctorFinding("python", "always", sys.version_info >= (3, 11), message, "use Python 3.11 or later")


def packages(distribution: str = DISTRIBUTION) -> DoctorFinding:
    """Check that every declared dependency is installed."""
    try:
        version = importlib.metadata.version(distribution)
        required = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return DoctorFinding("packages", "always", False, f"{distribution} is not installed here.", "pip install codex-replay")
    names = [re.split(r"[^A-Za-z0-9_.-]", text)[0] for text in required if "extra ==" not in text]
    missing = [name for name in names if not _has(name)]
    if missing:
        return DoctorFinding(
            "packages", "always", False, f"not installed: {', '.join(missing)}.", f"pip install {' '.join(missing)}"
        )
    return DoctorFinding("packages", "always", True, f"{distribution} {version} and its {len(names)} dependencies")


def _has(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def files(distribution: str = DISTRIBUTION) -> DoctorFinding:
    """Check that each installed file is unchanged since its installation."""
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
        if path.hash is not None:
            digest = base64.urlsafe_b64encode(hashlib.new(path.hash.mode, data).digest()).decode().rstrip("=")
            if digest != path.hash.value:
                wrong.append(f"{path} has changed")
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        return DoctorFinding("files", "always", False, f"{wrong[0]}{more}.", INSTALL_AGAIN)
    return DoctorFinding("files", "always", bool(listed), f"{len(listed)} files, unchanged since the install", INSTALL_AGAIN)


def bundle(version: str = DEFAULT, folder: str | None = None) -> DoctorFinding:
    """Check that the hash of each packaged schema file is the recorded hash, and that the experimental bundle can be read.

    `folder` is used in place of the folder of the packaged schema files.
    """
    files = Folder(folder or version_data.schema_folder(version))
    try:
        table = version_data.read(f"{version}/schema.sha256").decode("ascii").splitlines()
    except OSError as error:
        return DoctorFinding("bundle", "always", False, f"{error.filename}: {error.strerror}.", INSTALL_AGAIN)
    wrong = []
    for line in table:
        expected, name = line.split(maxsplit=1)
        try:
            data = files[name.removeprefix("schema/")]
        except OSError:
            wrong.append(name)
            continue
        if hashlib.sha256(data).hexdigest() != expected:
            wrong.append(name)
    if wrong:
        be = "is" if len(wrong) == 1 else "are"
        message = f"{len(wrong)} of the {len(table)} schema files of {version} {be} missing or changed: {', '.join(wrong[:3])}."
        return DoctorFinding("bundle", "always", False, message, INSTALL_AGAIN)
    experimental = version_data.schema_folder(version, experimental=True)
    try:
        if os.path.exists(experimental):
            load_file(experimental, version)
    except BundleError as error:
        return DoctorFinding("bundle", "always", False, str(error), INSTALL_AGAIN)
    return DoctorFinding("bundle", "always", True, f"{len(table)} schema files of {version}, all hashes match")


def suites_there(suites: Path) -> DoctorFinding:
    """Check that the suites and their cassettes are installed."""
    names = sorted(path.name for path in suites.iterdir() if (path / "__init__.py").is_file()) if suites.is_dir() else []
    cassettes = packed(str(suites.parent / "cassettes"))
    recorded = len(cassettes_in(cassettes)[0]) if os.path.exists(cassettes) else 0
    message = f"{', '.join(names) or 'none'}; {recorded} cassettes ({suites.parent})"
    return DoctorFinding("suites", "always", bool(names and recorded), message, INSTALL_AGAIN)


def fake_codex(path: Path) -> DoctorFinding:
    """Check that fake-codex exists at `path`, is executable, and answers."""
    if not path.exists():
        return DoctorFinding("fake-codex", "always", False, f"there is no {path}.", INSTALL_AGAIN)
    if not os.access(path, os.X_OK):
        return DoctorFinding("fake-codex", "always", False, f"{path} is not executable.", f"chmod +x {path}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FAKE_CODEX_")}
    try:
        done = subprocess.run(
            [path, "app-server"], input=INITIALIZE, capture_output=True, timeout=PATIENCE, env=environment, check=False
        )
        answer = json.loads(done.stdout)["result"]["userAgent"]
    except OSError as error:
        return DoctorFinding("fake-codex", "always", False, f"{path} does not start: {error.strerror}.", INSTALL_AGAIN)
    except subprocess.TimeoutExpired:
        return DoctorFinding("fake-codex", "always", False, f"{path} does not answer within {PATIENCE:g} s.", INSTALL_AGAIN)
    except (ValueError, LookupError, TypeError):
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["it printed nothing"])[-1]
        return DoctorFinding("fake-codex", "always", False, f"{path} does not answer initialize: {last}", INSTALL_AGAIN)
    return DoctorFinding("fake-codex", "always", True, f"answers as {str(answer).split(' ')[0]} ({path})")


def on_path() -> DoctorFinding:
    """Check that the fake-codex on PATH belongs to this Python environment."""
    own = Path(sys.executable).with_name("fake-codex")
    found = shutil.which("fake-codex")
    fix = f"activate the environment, or put {own.parent} first on PATH"
    if found is None:
        return DoctorFinding("PATH", "extra", False, "fake-codex is not on PATH; the suites find it without PATH.", fix)
    if Path(found).resolve() != own.resolve():
        return DoctorFinding("PATH", "extra", False, f"fake-codex on PATH belongs to another environment ({found}).", fix)
    return DoctorFinding("PATH", "extra", True, f"fake-codex is {found}")


def plugin() -> DoctorFinding:
    """Check that pytest, started in the working directory, loads the codex-replay plugin."""
    try:
        # As the command `pytest` does, and not `python -m pytest`: the working directory shadows no module.
        argv = [sys.executable, "-P", "-m", "pytest", "-VV"]
        done = subprocess.run(argv, capture_output=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return DoctorFinding(
            "plugin", "always", False, f"pytest did not start within {PATIENCE} s.", "check conftest.py in this folder"
        )
    message = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode != 0:
        last = (message.strip().splitlines() or ["it printed nothing"])[-1]
        return DoctorFinding(
            "plugin", "always", False, f"pytest does not start in this folder: {last}", "fix that, or use another folder"
        )
    if re.search(rf"^\s*{DISTRIBUTION}-\S+ at ", message, re.MULTILINE) is None:
        if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
            fix = "unset PYTEST_DISABLE_PLUGIN_AUTOLOAD, or add -p codex_replay"
        else:
            fix = "remove `-p no:codex_replay` from this folder's pytest configuration; otherwise " + INSTALL_AGAIN
        return DoctorFinding("plugin", "always", False, "pytest does not load the codex-replay plugin.", fix)
    return DoctorFinding("plugin", "always", True, "pytest loads it")


def _program(names: str, need: Need, why: str, mend: str) -> DoctorFinding:
    """Check that one of the programs in `names` (separated by spaces) is on PATH.

    The first program in `names` also gives the finding its name.
    """
    candidates = names.split()
    found = next((path for name in candidates if (path := shutil.which(name)) is not None), None)
    return DoctorFinding(candidates[0], need, found is not None, found or f"not on PATH; {why}.", mend)


def cache() -> DoctorFinding:
    """Check that the folder for real Codex binaries is writable."""
    folder = cache_folder()
    there = next((place for place in (folder, *folder.parents) if place.exists()), Path("/"))
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        fix = "fix its permissions, or set CODEX_REPLAY_CACHE to another folder"
        return DoctorFinding("cache", "real", False, f"{folder} cannot be written: {error.strerror}.", fix)
    free = shutil.disk_usage(there).free
    return DoctorFinding("cache", "real", True, f"{folder}, {free / 1e9:.1f} GB free")


def codexes(wanted: str = DEFAULT) -> DoctorFinding:
    """Check that the real Codex `wanted` is installed, and that each installed version is undamaged."""
    install = f"codex-replay codex install {wanted}"
    try:
        here = [it for it in list_installed() if it.triple == this_platform()[0]]
    except CodexInstallError as error:
        return DoctorFinding("codex", "real", False, str(error), "run the suites on the fakes")
    for it in here:
        folder = cache_folder() / "codex" / f"{it.version}-{it.triple}"
        if (problem := it.problem or damage(folder)) is not None:
            return DoctorFinding(
                "codex", "real", False, f"{it.version} is damaged: {problem}.", f"codex-replay codex install {it.version}"
            )
    versions = ", ".join(it.version for it in here)
    if wanted not in [it.version for it in here]:
        return DoctorFinding(
            "codex", "real", False, f"{wanted} is not installed{f' ({versions} is)' if versions else ''}.", install
        )
    return DoctorFinding("codex", "real", True, versions)


def namespaces() -> DoctorFinding:
    """Check that this computer can run a program without a network.

    Some tests run programs without a network, to prove that they need none.
    """
    command = ["unshare", "-rn", "true"]
    try:
        well = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        well = False
    message = (
        "`unshare -rn` works" if well else "`unshare -rn` does not work, so the tests cannot prove that a run needs no network."
    )
    return DoctorFinding(
        "namespaces", "extra", well, message, "on Linux, allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)"
    )
