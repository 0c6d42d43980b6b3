"""fake-codex as people put it in the place of `codex`: started through a link, from another folder, by its bare name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

FAKE = Path(sys.executable).with_name("fake-codex")
ROOT = Path(__file__).parents[2]


def version_of(*argv: str | Path, cwd: Path, path: str = "/usr/bin:/bin") -> str:
    done = subprocess.run([*argv, "--version"], capture_output=True, text=True, cwd=cwd, env={"PATH": path}, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("relative", [False, True])
def test_a_link_named_codex_starts_it(tmp_path: Path, relative: bool) -> None:
    first, second = tmp_path / "fake", tmp_path / "bin" / "codex"
    second.parent.mkdir()
    first.symlink_to(FAKE)
    second.symlink_to(Path("..") / "fake" if relative else first)
    assert version_of(second, cwd=tmp_path) == "codex-cli 0.92.0\n"
    assert version_of("codex", cwd=tmp_path, path=f"{second.parent}:/usr/bin:/bin") == "codex-cli 0.92.0\n"
    assert version_of("./codex", cwd=second.parent) == "codex-cli 0.92.0\n"


def test_sh_and_python_start_it_too(tmp_path: Path) -> None:
    assert version_of("sh", FAKE.name, cwd=FAKE.parent) == "codex-cli 0.92.0\n"
    assert version_of(sys.executable, FAKE, cwd=tmp_path) == "codex-cli 0.92.0\n"


@pytest.mark.parametrize("linked", [False, True])
def test_a_capture_never_replaces_the_recording_that_is_replayed(tmp_path: Path, linked: bool) -> None:
    cassette = tmp_path / "a.ndjson"
    cassette.write_bytes((ROOT / "cassettes" / "app_server" / "test_v2" / "thread_start.ndjson").read_bytes())
    before = cassette.read_bytes()
    capture = tmp_path / "link" if linked else cassette
    if linked:
        capture.symlink_to(cassette)
    env = {"PATH": "/usr/bin:/bin", "FAKE_CODEX_CASSETTE": str(tmp_path), "FAKE_CODEX_CAPTURE": str(capture)}
    done = subprocess.run([FAKE, "app-server"], input=b"", capture_output=True, env=env, timeout=120)
    assert done.returncode == 2
    assert b"the cassette that is replayed; choose another file" in done.stderr
    assert cassette.read_bytes() == before


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["app-server", "--help"]])
def test_help_names_every_setting(tmp_path: Path, arguments: list[str]) -> None:
    done = subprocess.run([FAKE, *arguments], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    sources = "".join(path.read_text() for path in (ROOT / "fake_server").rglob("*.py"))
    for name in set(re.findall(r"FAKE_CODEX_[A-Z]+", sources)):
        assert name in done.stdout
    assert "asyncio" not in done.stdout
    assert "Exit status:" in done.stdout
