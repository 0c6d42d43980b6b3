"""The configuration of a project: where it stands, what it may say, and what is said of one that is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codex_replay.plugin.base.configuration import BadConfiguration, Configuration, find_root, read
from codex_replay.plugin.base.option_table import KEYS
from codex_replay.plugin.base.subjects import BadSubject
from codex_replay.plugin.proxy.subject import CAPABILITIES, CLIENTS, parse_proxy

EDITOR = "[tool.codex-replay.editor-client.vim]\ncommand = 'vim {codex}'\n"


def configuration(folder: Path, text: str, name: str = "pyproject.toml") -> Configuration:
    (folder / name).write_text(text)
    return read(folder, KEYS)


@pytest.mark.parametrize("name", ["pyproject.toml", "codex-replay.toml"])
def test_both_files_have_the_same_tables(tmp_path: Path, name: str) -> None:
    found = configuration(tmp_path, EDITOR, name)
    assert found.path == tmp_path / name
    assert found.subjects("editor-client") == {"vim": {"command": "vim {codex}"}}
    assert found.subjects("lite-client") == {}


def test_a_pyproject_without_the_table_leaves_the_other_file_to_be_read(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n")
    assert configuration(tmp_path, EDITOR, "codex-replay.toml").path == tmp_path / "codex-replay.toml"
    (tmp_path / "pyproject.toml").write_text(EDITOR)
    with pytest.raises(BadConfiguration, match=r"is in .*pyproject.toml and .*codex-replay.toml; keep only one"):
        read(tmp_path, KEYS)


def test_a_pipe_and_a_device_are_no_configuration(tmp_path: Path) -> None:
    """Nobody writes into the pipe, and the device has no end."""
    os.mkfifo(tmp_path / "codex-replay.toml")
    (tmp_path / "pyproject.toml").symlink_to("/dev/zero")
    program = "from pathlib import Path; from codex_replay.plugin.base.configuration import read; print(read(Path('.'), ()))"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{Configuration()}\n", done.stderr


def test_a_file_that_is_too_long_and_one_with_a_byte_order_mark(tmp_path: Path) -> None:
    os.truncate(os.open(tmp_path / "codex-replay.toml", os.O_CREAT | os.O_RDWR), 1 << 40)
    with pytest.raises(BadConfiguration, match=r"codex-replay.toml has 1099511627776 bytes; a configuration has at most 1048576"):
        read(tmp_path, KEYS)
    (tmp_path / "codex-replay.toml").write_bytes(b"\xef\xbb\xbf" + EDITOR.encode())
    assert read(tmp_path, KEYS).subjects("editor-client") == {"vim": {"command": "vim {codex}"}}


def test_there_may_be_none(tmp_path: Path) -> None:
    assert read(tmp_path, KEYS) == Configuration()


def test_the_root_is_the_nearest_folder_with_one_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "codex-replay.toml").touch()
    assert find_root(tmp_path / "a" / "b") == tmp_path
    (tmp_path / "a" / "pyproject.toml").touch()
    assert find_root(tmp_path / "a" / "b") == tmp_path / "a"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[tool.codex-replay", "pyproject.toml is not TOML: "),
        ("a = " + "[" * 100_000, "pyproject.toml is not TOML: it is nested too deeply."),
        ("tool = 1", "pyproject.toml: tool must be a table."),
        ("[tool]\ncodex-replay = 1", "pyproject.toml: codex-replay must be a table."),
        (
            "[tool.codex-replay]\nproxi = 'x'",
            "[tool.codex-replay] has no key 'proxi'; did you mean 'proxy'? The allowed keys are app-s",
        ),
        ("[tool.codex-replay]\nproxy = true", "[tool.codex-replay] proxy must be a string."),
        ("[tool.codex-replay.report]\na = 1", "[tool.codex-replay] report must be a string."),
        ("[tool.codex-replay.lite-client]\ncommand = 'x'", "[tool.codex-replay.lite-client] command must be a table: "),
    ],
)
def test_what_is_wrong_is_said_with_file_table_and_key(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(BadConfiguration, match=re.escape(sentence)):
        configuration(tmp_path, text).subjects("lite-client")


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            "comand = 'x'",
            "[tool.codex-replay.lite-client.m] has no key 'comand'; did you mean 'command'? The allowed keys are command, b",
        ),
        ("command = 3", "[tool.codex-replay.lite-client.m] command must be a string."),
        ("baseline = 'x'", "[tool.codex-replay.lite-client.m] must have a command."),
    ],
)
def test_what_is_wrong_with_a_subject_is_said(tmp_path: Path, row: str, sentence: str) -> None:
    found = configuration(tmp_path, f"[tool.codex-replay.lite-client.m]\n{row}\n")
    with pytest.raises(BadConfiguration, match=re.escape(f"{tmp_path}/pyproject.toml: {sentence}")):
        found.command("lite-client", None, "reference")


def test_a_subject_is_found_by_its_name_or_as_the_only_one(tmp_path: Path) -> None:
    one = configuration(tmp_path, EDITOR)
    assert one.command("editor-client", None, "reference") == "vim {codex}"
    assert one.command("editor-client", "reference", "reference") == "reference"
    two = configuration(tmp_path, EDITOR + EDITOR.replace("vim", "emacs"))
    assert two.command("editor-client", None, "reference") == "reference"
    assert two.command("editor-client", "emacs", "reference") == "emacs {codex}"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"comand": "x", "url": "http://x"}, "a.toml: [tool.codex-replay.proxy.m] has no key 'comand'; did you mean 'command'?"),
        ({"command": "true", "clients": 0}, "a.toml: [tool.codex-replay.proxy.m] clients must be a whole number, 1 or more."),
        ({"command": "true", "capabilities": ["chatt"]}, "cors, not 'chatt'; did you mean 'chat'?"),
    ],
)
def test_what_is_wrong_with_a_proxy_is_said_with_its_file(row: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadSubject, match=re.escape(sentence)):
        parse_proxy("m", {"m": row}, "a.toml")


def test_a_proxy_has_every_capability_and_bears_eight_clients_unless_its_table_says_otherwise() -> None:
    found = parse_proxy("m", {"m": {"command": "true", "clients": 2, "profile": "as-specified"}})
    assert (found.capabilities, found.clients) == (CAPABILITIES, 2)
    assert parse_proxy("reference", {}).clients == CLIENTS == 8
