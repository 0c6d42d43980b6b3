"""Published Codex clients report the same of the real Codex and of the scripted fake; docs/codex-clients.md shows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_replay.shell.http.backend_process import BackendProcess
from tests.real.sdks.codex_clients import play
from tests.real.sdks.codex_clients.play import CLIENTS, FEATURES, HERE, OUTCOMES, CodexClient, count, page

FOUND: dict[str, dict[str, Any]] = json.loads(OUTCOMES.read_text())


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_the_client_reports_the_same_of_both(client: CodexClient, backend: BackendProcess) -> None:
    lines: list[str] = []
    found = count(client, 1, backend, lines.append)
    assert lines == []
    assert found == {name: cell if isinstance(cell, str) else [1, 1] for name, cell in FOUND[client.package].items()}


def test_another_script_is_another_outcome(backend: BackendProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = next(client for client in CLIENTS if client.name == "codex-agent-sdk")
    outcomes = []
    for name, changed in (("same", "It ran."), ("other", "It did something else.")):
        text = json.dumps(play.script(client)).replace("It ran.", changed)
        monkeypatch.setattr(play, "script", lambda _client, found=text: json.loads(found))
        (tmp_path / name).mkdir()
        outcomes.append(play.on_fake(client, tmp_path / name, backend))
    assert [name for name in FEATURES if outcomes[0][name] != outcomes[1][name]] == ["approvals"]


def test_only_an_interrupted_turn_may_differ_in_its_usage(tmp_path: Path) -> None:
    usage = ["codex/event/token_count", "thread/tokenUsage/updated"]
    found = {name: [{"events": ["turn/started", *usage]}, {"events": usage}] for name in ("interrupt", "two turns")}
    assert play.comparable(found, tmp_path) == {
        "interrupt": [{"events": ["turn/started"]}, {"events": usage}],
        "two turns": [{"events": ["turn/started", *usage]}, {"events": usage}],
    }


def test_the_page_shows_the_outcomes() -> None:
    assert list(FOUND) == [client.package for client in CLIENTS]
    assert (HERE.parents[3] / "docs" / "codex-clients.md").read_text() == page(FOUND), (
        "Run: python -m tests.real.sdks.codex_clients.play --page > docs/codex-clients.md"
    )
