"""The folder of the installed Codex binaries, and the checks that decide whether a version is installed.

Strategy: each version and platform has a folder with a manifest of its files. A version is installed in another folder,
which is then renamed, so that the folder of a version is complete or does not exist. At each look-up, `find_installed`
detects damage by the sizes of the files, which is fast. Before an install is skipped, `damage` compares the hashes of the
files.

    <cache>/codex/<version>-<target triple>/manifest.json
    <cache>/codex/<version>-<target triple>/codex/codex        as the package has it, below vendor/<target triple>
    <cache>/codex/.lock-...  .tmp-...                          an install under way
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from codex_replay.protocol.versions import DEFAULT
from codex_replay.shell.codex.errors import CodexInstallError

MANIFEST = "manifest.json"
MANIFEST_FORMAT = 1

# (system, machine) as Python names them -> (target triple inside the package, suffix of the split package's version).
PLATFORMS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("Linux", "x86_64"): ("x86_64-unknown-linux-musl", "linux-x64"),
    ("Linux", "aarch64"): ("aarch64-unknown-linux-musl", "linux-arm64"),
    ("Darwin", "x86_64"): ("x86_64-apple-darwin", "darwin-x64"),
    ("Darwin", "arm64"): ("aarch64-apple-darwin", "darwin-arm64"),
}
_SAME_MACHINE = {("Linux", "amd64"): "x86_64", ("Linux", "arm64"): "aarch64", ("Darwin", "aarch64"): "arm64"}
_VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z]+(\.[0-9A-Za-z]+)*)?", re.ASCII)


@dataclass(frozen=True)
class Manifest:
    """The manifest of an installed folder: the size in bytes and the SHA-256 (hex) of each file, and the source of the files."""

    version: str
    package: str
    integrity: str
    triple: str
    binary: str
    files: Mapping[str, tuple[int, str]]

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the binary, in hex."""
        return self.files[self.binary][1]

    def encode(self) -> bytes:
        """Return the manifest as the JSON text that `decode` reads."""
        files = {name: {"size": size, "sha256": digest} for name, (size, digest) in sorted(self.files.items())}
        value = {"manifest": MANIFEST_FORMAT, "version": self.version, "package": self.package}
        value |= {"integrity": self.integrity, "triple": self.triple, "binary": self.binary}
        return json.dumps({**value, "sha256": self.sha256, "files": files}, indent=2).encode() + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        """Read the manifest of an installed version. Raises ValueError, KeyError or TypeError if the manifest is invalid."""
        value = json.loads(data)
        if value["manifest"] != MANIFEST_FORMAT:
            raise ValueError("another manifest format")
        files = {str(name): (int(it["size"]), str(it["sha256"])) for name, it in value["files"].items()}
        if value["binary"] not in files or any(_leaves(name) for name in files):
            raise ValueError("the manifest names files outside its folder")
        texts = {key: str(value[key]) for key in ("version", "package", "integrity", "triple", "binary")}
        return cls(**texts, files=files)


@dataclass(frozen=True)
class Installed:
    """One installed Codex: its version, its target triple, the path of its binary, and its size on disk in bytes."""

    version: str
    triple: str
    path: Path
    size: int
    problem: str | None = None


def cache_folder() -> Path:
    """Return the cache folder: $CODEX_REPLAY_CACHE, or codex-replay under $XDG_CACHE_HOME or ~/.cache."""
    chosen = os.environ.get("CODEX_REPLAY_CACHE")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification asks to ignore a relative path.
    return (Path(base) if os.path.isabs(base) else Path("~/.cache").expanduser()) / "codex-replay"


def this_platform() -> tuple[str, str]:
    """Return the target triple and the package suffix of this computer.

    Raises CodexInstallError if Codex has no binary for this computer.
    """
    system, machine = platform.system(), platform.machine()
    machine = _SAME_MACHINE.get((system, machine), machine)
    try:
        return PLATFORMS[system, machine]
    except KeyError:
        raise CodexInstallError(
            f"There is no Codex binary for {system or 'this system'} on {machine or 'this machine'}: use Linux or macOS"
            " on x86-64 or arm64."
        ) from None


def check_version(version: str) -> str:
    """Return `version` if it has the form of a package version ("0.92.0"). Otherwise raise CodexInstallError."""
    if not _VERSION.fullmatch(version):
        raise CodexInstallError(
            f"{version!r} is not a Codex version: give the full number of a published version, such as {DEFAULT}."
        )
    return version


def place_of(version: str) -> Path:
    """Return the folder in which the binary of `version` is or would be installed."""
    return cache_folder() / "codex" / f"{check_version(version)}-{this_platform()[0]}"


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of an installed folder, or None if it cannot be read."""
    try:
        return Manifest.decode((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def find_installed(version: str) -> Path | None:
    """Return the path of the installed binary of `version`, or None. Only the names and sizes of the files are checked.

    Raises CodexInstallError for a text that is not a version, or on an unsupported platform.
    """
    folder = place_of(version)
    manifest = read_manifest(folder)
    if manifest is None or _misfit(folder, manifest) is not None:
        return None
    return folder / manifest.binary


def list_installed() -> list[Installed]:
    """Return every installed Codex in the cache, for any platform, including damaged ones, sorted by version."""
    root = cache_folder() / "codex"
    try:
        folders = [folder for folder in root.iterdir() if folder.is_dir() and not folder.name.startswith(".")]
    except OSError:
        return []
    found = []
    for folder in folders:
        manifest = read_manifest(folder)
        if manifest is not None:
            size = sum(size for size, _ in manifest.files.values())
            path = folder / manifest.binary
            found.append(Installed(manifest.version, manifest.triple, path, size, _misfit(folder, manifest)))
    return sorted(found, key=lambda it: (_order(it.version), it.triple))


def damage(folder: Path) -> str | None:
    """Return a short reason if an installed folder is damaged.

    Return None if each file has the hash in the manifest.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return "its manifest is missing or unreadable"
    misfit = _misfit(folder, manifest)
    if misfit is not None:
        return misfit
    for name, (_, expected) in manifest.files.items():
        if sha256_of(folder / name) != expected:
            return f"the SHA-256 of {name} has changed since the install"
    return None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def locked(place: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Lock the folder of one installed version.

    If another install has locked the folder, call `waiting` once, and wait. The operating system releases the lock when the
    process ends, even if the process was killed.
    """
    path = place.parent / f".lock-{place.name}"
    report = False
    while True:
        with path.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not report:
                    waiting()
                report = True
                fcntl.flock(file, fcntl.LOCK_EX)
            # The previous owner removed the file; a lock on a file without a name excludes no process.
            if not _is_still(path, file.fileno()):
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _misfit(folder: Path, manifest: Manifest) -> str | None:
    for name, (size, _) in manifest.files.items():
        try:
            actual = (folder / name).stat().st_size
        except OSError:
            return f"{name} is missing"
        if actual != size:
            return f"{name} has {actual} bytes instead of {size}"
    if not os.access(folder / manifest.binary, os.X_OK):
        return f"{manifest.binary} is not executable"
    return None


def _leaves(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or not path.parts


def _order(version: str) -> tuple[list[int], bool, str]:
    numbers, _, pre = version.partition("-")
    return [int(part) for part in numbers.split(".") if part.isdigit()], not pre, pre
