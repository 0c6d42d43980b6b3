"""What the real Codex makes of instructions, and how large its request to the model is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_replay.shell.http.backend_process import BackendProcess
from tests.real.test_backend_real import codex, turn


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def body(backend: BackendProcess, root: Path, **given: str) -> tuple[int, dict[str, Any]]:
    """Run one turn of a thread that is started with these params; return the size of the request's body, and the body."""
    session = backend.session(root.name, ["one"])
    with codex(session, root, thread=given) as (client, thread):
        assert turn(client, thread)["status"] == "completed"
    (entry,) = [entry for entry in session.ledger() if entry["path"].endswith("/responses")]
    return int(dict(entry["headers"])["content-length"]), entry["body"]


def developer_texts(found: dict[str, Any]) -> list[str]:
    messages = [item for item in found["input"] if item.get("role") == "developer"]
    return [part["text"] for message in messages for part in message["content"]]


def test_developer_instructions_do_not_act_as_base_instructions(backend: BackendProcess, tmp_path: Path) -> None:
    """Base instructions replace `instructions`; developer instructions become a message of `input`. (HAND-34)"""
    _, plain = body(backend, tmp_path / "plain")
    _, base = body(backend, tmp_path / "base", baseInstructions="Be brief.")
    _, developer = body(backend, tmp_path / "developer", developerInstructions="Be brief.")
    assert base["instructions"] == "Be brief."
    assert "Be brief." not in developer_texts(base)
    assert developer["instructions"] == plain["instructions"] != "Be brief."
    assert developer_texts(developer).count("Be brief.") == 1
    assert "Be brief." not in developer_texts(plain)


@pytest.mark.parametrize(("model", "low", "high"), [("gpt-5.2", 30_000, 60_000), ("gpt-5.2-codex", 15_000, 30_000)])
def test_the_size_of_a_body(backend: BackendProcess, tmp_path: Path, model: str, low: int, high: int) -> None:
    """The request of a first turn, with the instructions and tools of the server's own. (REAL-32)"""
    size, found = body(backend, tmp_path / "size", model=model)
    assert found["model"] == model
    assert low < size < high
