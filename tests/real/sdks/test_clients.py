"""The table of clients (docs/clients.md): what a program gets from each, in each scenario."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from codex_replay.shell.http.backend_process import BackendProcess
from tests.real.sdks import clients_table
from tests.real.sdks.clients_table import CLIENTS, EXPECTED, HERE, SCENARIOS, outcomes, page, scenarios

CELLS: dict[str, dict[str, list[str]]] = json.loads(EXPECTED.read_text())


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


@pytest.mark.parametrize("client", CLIENTS)
def test_every_cell_is_as_documented(backend: BackendProcess, client: str) -> None:
    found = outcomes(backend, client)
    assert found == CELLS[client]
    assert list(found) == list(scenarios(client))


def test_the_page_shows_the_cells() -> None:
    assert (HERE.parents[2] / "docs" / "clients.md").read_text() == page(CELLS), (
        "Run: python -m tests.real.sdks.clients_table page > docs/clients.md"
    )


def test_a_wrong_backend_changes_a_cell(backend: BackendProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: list[Any] = [{"items": [{"type": "event", "event": {"type": "response.output_text.delta", "delta": 1}}, "Hello."]}]
    monkeypatch.setattr(clients_table, "SCENARIOS", {**SCENARIOS, "text": wrong})
    assert outcomes(backend, "openai 3")["text"][1] != CELLS["openai 3"]["text"][1]
