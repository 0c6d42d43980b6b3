"""Whole numbers that someone else wrote, and what reads them: no number of digits, and no digit of another script, is a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_fakes.backend.server import read_options
from codex_fakes.scripted.race import Race
from codex_fakes.scripted.state.plain_toml import plain
from codex_fakes.stdio.faults import FAULTS, fault_of
from codex_replay.core.text.numbers import whole_number
from codex_replay.core.wire.jsonrpc import is_number
from codex_replay.protocol.versions import is_version

LONG = "1" * 5000
NAME = next(iter(FAULTS))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("9" * 19, 10**19 - 1),
        ("9" * 20, None),
        (LONG, None),
        ("", None),
        ("-1", None),
        ("²", None),
        ("٣", None),
    ],
)
def test_a_whole_number(text: str, number: int | None) -> None:
    assert whole_number(text) == number


@given(st.text())
def test_any_text_is_a_number_or_none(text: str) -> None:
    found = whole_number(text)
    assert found is None or str(found) == (text.lstrip("0") or "0")


@pytest.mark.parametrize("text", [LONG, "²"])
@pytest.mark.parametrize("option", ["--port", "--max-body", "--ledger-requests"])
def test_the_backend_refuses_what_is_no_number(option: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{option} {text[:3]}"):
        read_options([option, text])


def test_other_readers() -> None:
    assert not is_version(f"0.{LONG}.0")
    assert [is_number(each) for each in ("7", LONG, "²", "")] == [True, False, False, False]
    assert plain(f"a = {LONG}") is None
    for read in (lambda: Race(LONG, "0.92.0"), lambda: fault_of(f"{NAME}:{LONG}")):
        with pytest.raises(ValueError, match="must be a whole number"):
            read()


def test_the_parallel_cases_of_a_run(tmp_path: Path) -> None:
    command: list[Any] = [
        sys.executable,
        "-P",
        "-c",
        "from codex_replay.cli.main import main; main()",
        "run",
        "schema",
        "-n",
        LONG,
    ]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (4, False)
    assert "give the number of parallel cases" in done.stderr
