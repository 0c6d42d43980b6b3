"""Install one Codex version: resolve, download, check, unpack, and move it into place.

The install works in a temporary folder next to the final folder, and locks the final folder. The last step of the install
is a rename of the temporary folder. If the install fails or is interrupted earlier, it removes the temporary folder. If the
install is killed, the temporary folder stays, and the next install of the version removes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from codex_replay.shell.codex.cache import (
    MANIFEST,
    Manifest,
    cache_folder,
    damage,
    locked,
    place_of,
    read_manifest,
    this_platform,
)
from codex_replay.shell.codex.errors import CodexInstallError, FlakyDownload, from_os_error
from codex_replay.shell.codex.npm import PACKAGE, Npm, Package, find_npm
from codex_replay.shell.codex.tarball import check_integrity, unpack

ATTEMPTS = 3
# Seconds before the second attempt; doubled for each further one.
RETRY_DELAY = 1.0


class Step(NamedTuple):
    """One progress report of an install: the stage, a line of text, the number of finished bytes, and the `total` number of bytes
    if it is known.

    The stages are: wait, damaged, resolve, download, retry, check, unpack.
    """

    stage: str
    text: str
    done: int = 0
    total: int | None = None


def ensure(version: str, progress: Callable[[Step], None] = lambda step: None) -> Path:
    """Return the path of the binary of Codex `version`. Install the binary if it is missing or damaged.

    Only an install needs npm and a network. If the hashes of an installed binary are right, its path is returned without a
    lock or a write. Raises CodexInstallError. After a KeyboardInterrupt, the temporary folder is removed, and the exception
    is raised again.
    """
    place = place_of(version)
    try:
        if damage(place) is None:
            return _binary(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        waiting = Step("wait", f"Waiting for another install of Codex {version} to end")
        with locked(place, lambda: progress(waiting)):
            problem = damage(place)
            if problem is not None:
                if place.exists():
                    progress(Step("damaged", f"The installed Codex {version} is damaged ({problem}); installing it again"))
                _install(version, place, progress)
    except OSError as error:
        raise from_os_error(error, cache_folder()) from error
    return _binary(place)


def _install(version: str, place: Path, progress: Callable[[Step], None]) -> None:
    program = find_npm()
    temporary = f".tmp-{place.name}-"
    for stale in place.parent.glob(temporary + "*"):
        shutil.rmtree(stale, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=temporary, dir=place.parent))
    try:
        attempt = 1
        while True:
            try:
                _attempt(version, program, work / str(attempt), place, progress)
                return
            except FlakyDownload as error:
                shutil.rmtree(work / str(attempt), ignore_errors=True)
                if attempt == ATTEMPTS:
                    raise
                progress(Step("retry", f"Attempt {attempt} of {ATTEMPTS} failed: {error}"))
            time.sleep(RETRY_DELAY * 2 ** (attempt - 1))
            attempt += 1
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _attempt(version: str, program: str, work: Path, place: Path, progress: Callable[[Step], None]) -> None:
    triple, suffix = this_platform()
    (work / "npm").mkdir(parents=True)
    (work / "files").mkdir()
    progress(Step("resolve", f"Looking up Codex {version} in the npm registry"))
    npm = Npm(program, work / "npm", lambda spec, done: progress(Step("download", f"Downloading {spec}", done)))
    package = _package_for(npm, version, suffix)
    progress(Step("download", f"Downloading {package.spec}"))
    tarball = npm.pack(package.spec)
    npm.clear()
    total = tarball.stat().st_size
    progress(Step("check", f"Checking the SHA-512 of {total / 1e6:.1f} MB", total, total))
    check_integrity(tarball, package.integrity, package.spec)
    unpacking = f"Unpacking the binary for {triple}"
    binary, files = unpack(
        tarball, triple, work / "files", package.spec, lambda done: progress(Step("unpack", unpacking, done, total))
    )
    manifest = Manifest(version, package.spec, package.integrity, triple, binary, files)
    (work / "files" / MANIFEST).write_bytes(manifest.encode())
    _put_in_place(work / "files", place, work / "old")


def _package_for(npm: Npm, version: str, suffix: str) -> Package:
    """Return the npm package that contains the binary for this platform.

    Up to version 0.98, the main package contains the binaries of all platforms. Later main packages have an optional
    dependency for each platform, such as "@openai/codex-linux-x64": "npm:@openai/codex@0.141.0-linux-x64".
    """
    main = npm.view(f"{PACKAGE}@{version}")
    if not main.optional:
        return main
    alias = main.optional.get(f"{PACKAGE}-{suffix}")
    if alias is None or not alias.startswith(f"npm:{PACKAGE}@"):
        raise CodexInstallError(f"Codex {version} was published without a binary for this platform ({suffix}).")
    return npm.view(alias.removeprefix("npm:"))


def _put_in_place(files: Path, place: Path, aside: Path) -> None:
    """Move the folder of an installed version to its final place by one rename.

    A damaged folder at the final place is first moved away, because programs in it may be running.
    """
    if place.exists():
        os.replace(place, aside)
    os.replace(files, place)


def _binary(place: Path) -> Path:
    manifest = read_manifest(place)
    if manifest is None:
        raise CodexInstallError(f"{place} was removed while it was checked: install again.")
    return place / manifest.binary
