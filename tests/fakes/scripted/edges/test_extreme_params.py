"""The scripted fake with extreme values of params: deep key paths, large integers, signs in cursors.

Each statement was watched on the real binary.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.scripted.edges.test_refusing import configured

READ = ("config/read", {"includeLayers": False})


def write(path: str, value: Any = 1) -> tuple[str, Any]:
    return "config/value/write", {"keyPath": path, "value": value, "mergeStrategy": "replace"}


def deep(names: int) -> str:
    return ".".join(["a"] * names)


@pytest.mark.parametrize("names", [82, 100])
def test_a_key_path_that_is_too_deep_makes_the_file_unreadable(tmp_path: Path, names: int) -> None:
    asked = [
        write(deep(names)),
        READ,
        ("thread/start", {}),
        write("b"),
        ("getUserSavedConfig", None),
        ("setDefaultModel", {"model": "m"}),
    ]
    found = configured(tmp_path, "", *asked)
    fault = f"{tmp_path}/home/config.toml:1:1: recursion limit"
    assert found[0]["status"] == "ok"
    assert [one["message"] for one in found[1:]] == [
        f"failed to read configuration layers: {fault}",
        f"error deriving config: {fault}",
        f"failed to load configuration: {fault}",
        f"failed to load configuration: {fault}",
        "failed to persist model selection: recursion limit\n",
    ]


@pytest.mark.parametrize(("path", "value"), [(deep(81), 1), ("a", [[{"b": 1}]])])
def test_a_key_path_at_the_limit_is_read_again(tmp_path: Path, path: str, value: Any) -> None:
    written, read = configured(tmp_path, "", write(path, value), READ)
    assert written["status"] == "ok"
    assert "config" in read


@pytest.mark.parametrize("path", ["a", deep(100)])
def test_a_table_that_is_too_deep_makes_the_file_unreadable(tmp_path: Path, path: str) -> None:
    table: Any = 1
    for _ in range(120):
        table = {"a": table}
    written, read = configured(tmp_path, "", write(path, table), READ)
    assert written["status"] == "ok"
    assert read["message"].endswith(":1:1: recursion limit")


@pytest.mark.parametrize("form", ["{} = 1\n", "[{}]\nx = 1\n", 'model = "m"\n\n[t]\n {} = 1\n'])
@pytest.mark.parametrize("names", [81, 50_000])
def test_a_file_with_a_key_that_is_too_deep_is_refused(tmp_path: Path, form: str, names: int) -> None:
    """The key of 50,000 names took tomllib more than a minute."""
    found = configured(tmp_path, form.format(deep(names)), READ, ("thread/start", {}), ("setDefaultModel", {"model": "m"}))
    fault = f"{tmp_path}/home/config.toml:1:1: recursion limit"
    assert [one["message"] for one in found] == [
        f"failed to read configuration layers: {fault}",
        f"error deriving config: {fault}",
        "failed to persist model selection: recursion limit\n",
    ]


@pytest.mark.parametrize(
    "text", [f"{deep(80)} = 1\n", f"[{deep(80)}]\nb = 1\n", f'x = "{deep(99)}"\n', f'x = """\n{deep(99)} {"." * 99}\n"""\n']
)
def test_a_file_with_many_dots_is_read(tmp_path: Path, text: str) -> None:
    assert "config" in configured(tmp_path, text, READ)[0]


@pytest.mark.parametrize("names", [101, 2000, 50_000])
def test_a_key_path_beyond_what_the_fake_keeps_is_refused_in_a_sentence(tmp_path: Path, names: int) -> None:
    written, read = configured(tmp_path, "", write(deep(names)), READ)
    assert written["message"] == f"fake-codex keeps no setting under more than 100 names, and keyPath has {names}"
    assert "config" in read


@pytest.mark.parametrize("path", ["", " \t\n", "\u00a0"])
def test_a_blank_key_path_is_empty(tmp_path: Path, path: str) -> None:
    (found,) = configured(tmp_path, "", write(path, 1 << 63))
    assert found["message"] == "keyPath must not be empty"


@pytest.mark.parametrize("path", [" model ", "\u001f"])
def test_a_key_path_with_blanks_is_a_name(tmp_path: Path, path: str) -> None:
    (found,) = configured(tmp_path, "", write(path))
    assert found["status"] == "ok"


NULL = "invalid value: invalid type: null, expected any valid TOML value"
LARGE = "invalid value: u64 value was too large"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("foo", 1 << 63, LARGE),
        ("model", 1 << 63, LARGE),
        ("model.x", (1 << 64) - 1, LARGE),
        ("foo", [1, {"a": 1 << 63}], LARGE),
        ("foo", [None, 1 << 63], NULL),
        ("foo", [1 << 63, None], LARGE),
    ],
)
def test_an_integer_that_toml_cannot_hold_is_refused(tmp_path: Path, path: str, value: Any, message: str) -> None:
    (found,) = configured(tmp_path, 'model = "m"\n', write(path, value))
    assert found["message"] == message


@pytest.mark.parametrize(
    ("cursor", "message"),
    [
        ("+0", None),
        ("+1", None),
        ("0001", None),
        ("++1", "invalid cursor: ++1"),
        ("+", "invalid cursor: +"),
        ("1_0", "invalid cursor: 1_0"),
        ("18446744073709551615", "cursor 18446744073709551615 exceeds total models 4"),
        ("18446744073709551616", "invalid cursor: 18446744073709551616"),
    ],
)
def test_a_cursor_is_read_as_a_whole_number_of_rust(tmp_path: Path, cursor: str, message: str | None) -> None:
    (found,) = configured(tmp_path, "", ("model/list", {"cursor": cursor}))
    assert found.get("message") == message


def test_the_number_of_turns_is_checked_before_the_thread(tmp_path: Path) -> None:
    (found,) = configured(tmp_path, "", ("thread/rollback", {"threadId": "x", "numTurns": 0}))
    assert found["message"] == "numTurns must be >= 1"
