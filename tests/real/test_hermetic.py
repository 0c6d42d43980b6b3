"""The hermetic home, proven on the real binary: a whole turn with no network but loopback, every call watched."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.shell.codex.cache import find_installed, list_installed, this_platform
from codex_replay.shell.codex.home import ApiKey, ChatGpt

PROBE = Path(__file__).with_name("hermetic_probe.py")
REQUIRED = "0.92.0"
# Newer versions are watched too where they happen to be installed: the configuration table claims to know them.
LATER = ("0.99.0", "0.116.0", "0.117.0", "0.125.0", "0.141.0")
NAMESPACE = ("unshare", "-rn")
ADDRESS = re.compile(r'(?:connect|sendto|sendmsg|sendmmsg)\(.*htons\((\d+)\).*?(?:inet_addr\(|AF_INET6, )"([^"]+)"')


def works(*command: str) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run([*command, "true"], capture_output=True, timeout=30).returncode == 0


HAS_NAMESPACE = works(*NAMESPACE)
HAS_STRACE = works("strace", "-f", "-qq", "-e", "trace=%network", "-o", "/dev/null")
needs_namespace = pytest.mark.skipif(
    not HAS_NAMESPACE, reason="NOT PROVEN: this system allows no network namespace (`unshare -rn` fails)"
)
needs_strace = pytest.mark.skipif(not HAS_STRACE, reason="NOT PROVEN: strace is not there, or this system lets it trace nothing")


def versions() -> list[str]:
    here = {it.version for it in list_installed() if it.triple == this_platform()[0] and it.problem is None}
    return [REQUIRED, *(version for version in LATER if version in here)]


def run(
    version: str, root: Path, *, namespace: bool, trace: Path | None = None, without: str = "", auth: str = "none"
) -> dict[str, Any]:
    binary = find_installed(version)
    assert binary is not None, f"Codex {version} is missing: run `codex-replay codex install {version}` first"
    command = [*(NAMESPACE if namespace else ()), sys.executable, str(PROBE), str(binary), version, str(root), "--auth", auth]
    command += ["--lo"] if namespace else []
    command += ["--strace", str(trace)] if trace else []
    command += ["--without", without] if without else []
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def destinations(trace: Path) -> set[tuple[str, int]]:
    """Each (address, port) that a connect or a send was called with."""
    found = ADDRESS.finditer(trace.read_text(encoding="utf-8", errors="replace"))
    return {(match.group(2), int(match.group(1))) for match in found}


@needs_namespace
@pytest.mark.parametrize("version", versions())
def test_a_whole_turn_needs_no_network_but_loopback(version: str, tmp_path: Path) -> None:
    """A whole turn needs no network but loopback. (REAL-01)"""
    report = run(version, tmp_path, namespace=True)
    assert report["interfaces"] == ["lo"]
    assert report["turn"] == "completed"
    assert report["seen"].count("POST /v1/responses") == 1


@needs_strace
@pytest.mark.parametrize("version", versions())
def test_no_call_goes_anywhere_but_to_the_backend(version: str, tmp_path: Path) -> None:
    # The port counts as well: a local resolver listens on loopback too, and no name is to be looked up.
    """No call goes anywhere but to the backend. (REAL-01)"""
    trace = tmp_path / "trace"
    report = run(version, tmp_path / "root", namespace=HAS_NAMESPACE, trace=trace)
    assert report["turn"] == "completed"
    assert destinations(trace) == {("127.0.0.1", report["port"])}
    assert set(report["seen"]) <= {"GET /v1/models", "POST /v1/responses"}


@needs_namespace
@pytest.mark.parametrize(
    ("auth", "credentials"),
    [
        ("none", [None, None]),
        ("api-key", [f"Bearer {ApiKey().key}", None]),
        ("chatgpt", [f"Bearer {ChatGpt().access_token}", ChatGpt().account_id]),
    ],
)
def test_the_login_that_is_written_is_the_one_that_is_used(auth: str, credentials: list[str | None], tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    report = run(REQUIRED, tmp_path / "root", namespace=True, trace=trace if HAS_STRACE else None, auth=auth)
    assert report["turn"] == "completed"
    assert report["credentials"] == [credentials]
    if HAS_STRACE:
        assert destinations(trace) == {("127.0.0.1", report["port"])}


@needs_namespace
@needs_strace
def test_the_watch_sees_a_home_that_is_not_hermetic(tmp_path: Path) -> None:
    # Only inside the namespace, where the look-up of a foreign name cannot get out.
    trace = tmp_path / "trace"
    report = run(REQUIRED, tmp_path / "root", namespace=True, trace=trace, without="OPENAI_BASE_URL")
    foreign = destinations(trace) - {("127.0.0.1", report["port"])}
    assert foreign, "without OPENAI_BASE_URL Codex asks for chatgpt.com, and the watch did not see it"
