"""The npm client: look up one package version, download its tarball, and describe errors.

npm runs in a separate process group, in a temporary folder that also contains npm's download cache. Therefore a broken
download leaves nothing in the user's npm cache, the size of the temporary folder shows the progress, and one kill ends all
processes of npm. npm itself retries only briefly, because the caller tries again after a `FlakyDownload`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from codex_replay.core.text.truncate import truncate
from codex_replay.shell.codex.cache import cache_folder
from codex_replay.shell.codex.errors import CodexInstallError, FlakyDownload, disk_full

PACKAGE = "@openai/codex"

_POLL_SECONDS = 0.1
# npm waits forever on a silent connection; this many seconds without a new byte end the attempt.
_STALL_SECONDS = 120.0
# The most memory (on Linux) and the largest download of npm, in bytes: npm keeps an endless answer of a registry in memory.
_MOST = 2 << 30
_FLAGS = (
    "--json",
    "--loglevel=error",
    "--no-update-notifier",
    "--ignore-scripts",
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=500",
    "--fetch-retry-maxtimeout=2000",
    "--fetch-timeout=60000",
)

# npm's error codes, by what the user can do about them.
_UNKNOWN = {"E404", "ETARGET"}
_NETWORK = {
    "EAI_AGAIN",
    "ECONNABORTED",
    "ECONNREFUSED",
    "ECONNRESET",
    "EHOSTUNREACH",
    "ENETDOWN",
    "ENETUNREACH",
    "ENOTFOUND",
    "EPIPE",
    "ERR_SOCKET_TIMEOUT",
    "ETIMEDOUT",
    "FETCH_ERROR",
}
_PASSING = {"E429", "E500", "E502", "E503", "E504", "EINTEGRITY", "ERR_STREAM_PREMATURE_CLOSE", "Z_BUF_ERROR"}
_FULL = {"ENOSPC", "EDQUOT"}
_CODE = re.compile(r"^npm (?:ERR!|error) code (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Package:
    """One version of the npm package, as the registry describes it.

    `integrity` has the hashes of the tarball, in the form of the HTML attribute `integrity` ("sha512-BASE64").
    """

    spec: str
    integrity: str
    optional: Mapping[str, str]


@dataclass(frozen=True)
class Npm:
    """A runner of the npm program in the folder `folder`.

    During a download, `grown` is called several times a second with the spec of the tarball and the number of bytes so far.
    """

    program: str
    folder: Path
    grown: Callable[[str, int], None]

    def view(self, spec: str) -> Package:
        """Return the entry of the npm registry for `spec`, which has the form "@openai/codex@VERSION"."""
        fields = ("name", "version", "dist.integrity", "optionalDependencies")
        value = self._run(("view", spec, *fields), spec)
        if not isinstance(value, dict) or not isinstance(value.get("dist.integrity"), str):
            raise CodexInstallError(
                f"The npm registry has no integrity hash for {spec}, so a download cannot be checked. Use another"
                " registry (`npm config get registry` shows the current registry)."
            )
        optional = value.get("optionalDependencies")
        pairs = optional.items() if isinstance(optional, dict) else ()
        return Package(spec, value["dist.integrity"], {str(name): str(what) for name, what in pairs})

    def pack(self, spec: str) -> Path:
        """Download the tarball of the npm package `spec`. Return the path of the tarball inside `folder`."""
        for old in self.folder.glob("*.tgz"):
            old.unlink()
        self._run(("pack", spec), spec)
        tarballs = list(self.folder.glob("*.tgz"))
        if len(tarballs) != 1:
            raise FlakyDownload(f"npm ended without an error but left no tarball of {spec}; install again.")
        return tarballs[0]

    def clear(self) -> None:
        """Delete npm's own copy of the download."""
        shutil.rmtree(self.folder / "npm-cache", ignore_errors=True)

    def _run(self, arguments: tuple[str, ...], spec: str) -> object:
        command = [self.program, *arguments, *_FLAGS, f"--cache={self.folder / 'npm-cache'}"]
        try:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise CodexInstallError(
                f"npm could not be started from {self.program} ({error.strerror}): repair the Node.js installation."
            ) from error
        with process:
            try:
                out, err = self._wait(process, command[1], spec)
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()  # after Ctrl-C Popen's own `__exit__` does not
                raise
        if process.returncode != 0:
            raise explain(process.returncode, out, err, spec)
        try:
            return json.loads(out)
        except ValueError:
            return None

    def _wait(self, process: subprocess.Popen[bytes], verb: str, spec: str) -> tuple[bytes, bytes]:
        before = size = fetched(self.folder)
        last_growth = time.monotonic()
        while True:
            try:
                return process.communicate(timeout=_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                now, old = time.monotonic(), size
                size = fetched(self.folder)
                if verb == "pack":
                    self.grown(spec, max(0, size - before))
                if max(size - before, _resident(process.pid)) > _MOST:
                    raise CodexInstallError(
                        f"The npm registry sent more than {_MOST >> 20} MB for {spec}: check `npm config get registry`; nothing"
                        " was installed."
                    ) from None
                if size != old:
                    last_growth = now
                elif now - last_growth > _STALL_SECONDS:
                    raise FlakyDownload(
                        f"The download of {spec} received nothing for {_STALL_SECONDS:.0f} seconds: check the network and"
                        " install again; nothing was installed."
                    ) from None


def _resident(pid: int) -> int:
    """Return the memory of a process in bytes, or 0 if the system does not have it in /proc."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * resource.getpagesize()
    except (OSError, LookupError):
        return 0


def find_npm() -> str:
    """Return the path of npm on PATH; raises CodexInstallError if npm is not installed."""
    program = shutil.which("npm")
    if program is None:
        raise CodexInstallError(
            "npm was not found on PATH: install Node.js (npm comes with it), or add its folder to PATH, and install again."
        )
    return program


def fetched(folder: Path) -> int:
    """Return the number of bytes that npm has downloaded below `folder` so far."""
    total = 0
    for part in ("tmp", "content-v2"):
        for root, _, names in os.walk(folder / "npm-cache" / "_cacache" / part):
            for name in names:
                # Files come and go while npm works.
                with contextlib.suppress(OSError):
                    total += os.stat(os.path.join(root, name)).st_size
    return total


def explain(status: int, out: bytes, err: bytes, spec: str) -> CodexInstallError:
    """Return the error for an npm process that ended with `status`.

    The details come from the JSON on npm's stdout, or from the text on its stderr.
    """
    code, summary = _failure(out, err)
    version = spec.removeprefix(PACKAGE + "@")
    because = f" ({summary})" if summary else ""
    if code in _UNKNOWN:
        return CodexInstallError(
            f"There is no Codex version {version} in the npm registry: `npm view {PACKAGE} versions` lists the published "
            f"versions."
        )
    if code in _FULL:
        return disk_full(cache_folder())
    if code in _NETWORK:
        return FlakyDownload(
            f"The npm registry could not be reached for {spec}, {code}{because}: check the network, a proxy setting and"
            " `npm config get registry`, and install again; nothing was installed."
        )
    if code in _PASSING:
        return FlakyDownload(f"The download of {spec} failed, {code}{because}: install again; nothing was installed.")
    if status < 0:
        return FlakyDownload(f"npm was ended by signal {-status} while it fetched {spec}: install again; nothing was installed.")
    return CodexInstallError(f"npm could not fetch {spec}: {code or f'exit status {status}'}{because}; nothing was installed.")


def _failure(out: bytes, err: bytes) -> tuple[str, str]:
    """Return npm's error code and its one-line summary.

    All versions of npm write the error code and the summary to stderr; newer versions write them as JSON.
    """
    text = err.decode(errors="replace")
    for candidate in (out, err):
        try:
            error = json.loads(candidate)["error"]
            return str(error.get("code") or ""), _one_line(str(error.get("summary") or ""))
        except (ValueError, LookupError, TypeError, AttributeError):
            continue
    found = _CODE.search(text)
    return (found.group(1) if found else ""), _one_line(text if not found else "")


def _one_line(text: str) -> str:
    """Return the first non-blank line of a text, shortened and without its full stop."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return truncate(line, 200).rstrip(".")
