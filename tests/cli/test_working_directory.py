"""The folder in which a command is started never shadows a module of ours, of our dependencies, or of our children."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
CASSETTE = Path(__file__).parents[2] / "cassettes" / "app_server" / "test_v2" / "text_turn.ndjson"
#: What a project may well call its own folders and files.
NAMES = ("codex_replay", "codex_fakes", "click", "yaml", "pytest", "rich", "tomli_w", "jsonschema_rs", "xdist", "httptools")
#: Names of the project's source roots and suites, of modules of pytest-xdist's workers, and of the standard library.
MORE = ("harness", "fake_server", "suites", "reports", "conftest", "execnet", "json", "typing", "asyncio", "sitecustomize")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in (*NAMES, *MORE):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('shadowed: {name}')\n")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["doctor"], 0),
        (["cassette", "lint", str(CASSETTE)], 0),
        (["cassette", "diff", str(CASSETTE), str(CASSETTE)], 0),
        (["drift", "0.92.0", "0.92.0"], 0),
        (["replay", str(CASSETTE), "--app-server", "fake"], 0),
        (["replay", str(CASSETTE), "--backend", "fake"], 0),
        (["record", "--out", "out.ndjson", "--", str(BIN / "fake-codex"), "app-server"], 0),
        (["run", "app_server/test_handshake.py", "-n", "1"], 0),
        (["run", "backend/test_routes.py", "-n", "1"], 0),
        (["run", "schema/test_counts.py", "-n", "2"], 0),
        (["run", "proxy/test_models.py", "-n", "1", "-k", "list_of_models or left_alone"], 0),
        (["run", "no-such-suite"], 4),
    ],
    ids=lambda value: " ".join(value[:2]).replace("/", "-") if isinstance(value, list) else None,
)
def test_a_command_is_the_same_in_any_folder(project: Path, command: list[str], status: int) -> None:
    done = subprocess.run(
        [str(BIN / "codex-replay"), *command], cwd=project, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert "shadowed" not in done.stdout + done.stderr
    assert done.returncode == status, done.stdout + done.stderr


@pytest.mark.parametrize(
    "command", [["run", "proxy"], ["init", "ci"], ["record", "--out", "x", "--", "true"], ["cassette", "diff", "a", "b"]]
)
def test_a_working_directory_that_was_deleted_is_a_sentence(tmp_path: Path, command: list[str]) -> None:
    words = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@"'
    done = subprocess.run(
        ["sh", "-c", words, str(BIN / "codex-replay"), *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
