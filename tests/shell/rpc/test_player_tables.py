"""A recorded client is played by the tables of the version in the cassette's header, never by another version's (law 6)."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.shell.http.player import HttpPlayer
from codex_replay.shell.rpc.player import Player


def rpc_player(codex: str) -> Any:
    return Player(None, {}, codex)  # type: ignore[arg-type]


def http_player(codex: str) -> Any:
    return HttpPlayer("http://127.0.0.1:1", codex=codex)


@pytest.mark.parametrize("make", [rpc_player, http_player])
@pytest.mark.parametrize(("codex", "masked"), [("0.92.0", True), ("0.93.0", False), ("unknown", False)])
def test_the_version_of_the_recording_chooses_what_is_masked(make: Any, codex: str, masked: bool) -> None:
    found = make(codex)._matcher.differences({"params": {"durationMs": 1}}, {"params": {"durationMs": 2}})
    assert (found == []) == masked
