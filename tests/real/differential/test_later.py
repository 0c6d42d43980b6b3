"""Random scenarios on the real 0.169.0 and on the scripted fake of it: their frames must be equal.

A scenario that differs is played once more, as for 0.92 (`test_differential`). `CODEX_REPLAY_SCENARIOS` asks for more of each
class, `CODEX_REPLAY_SEED` for others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.recordings.compare import compare
from codex_replay.shell.http.backend_process import BackendProcess
from tests.real.differential.later import KINDS, Both

VERSION = "0.169.0"
FAKE = str(Path(sys.executable).with_name("fake-codex"))
SCENARIOS = int(os.environ.get("CODEX_REPLAY_SCENARIOS", "3"))
SEED = os.environ.get("CODEX_REPLAY_SEED")
#: What only the real server can know: its cursors into the file of a thread, and the ids of its processes.
OPAQUE = ("turnsBackwardsCursor", "itemsBackwardsCursor", "backwardsCursor", "processId", "installationId")


def masked(frames: list[Frame]) -> list[Frame]:
    """Return the frames without the values of `OPAQUE`, of which stays whether they are null."""

    def mask(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: "opaque" if k in OPAQUE and v is not None else mask(v) for k, v in value.items()}
        return [mask(one) for one in value] if isinstance(value, list) else value

    return [Frame(f.n, f.t, f.seam, f.sender, f.kind, dumps(mask(f.value)) + b"\n") for f in frames]


def _opens(message: Any) -> bool:
    """Return True for a raw item of what Codex tells the model before the first message of the user."""
    if message.get("method") != "rawResponseItem/completed":
        return False
    item = message["params"]["item"]
    kinds = item.get("internal_chat_message_metadata_passthrough", {}).get("content_item_kinds", [])
    return item.get("role") == "developer" or "environments.environment_context" in kinds


def differences(real: list[Frame], fake: list[Frame]) -> list[str]:
    """Return a sentence for each difference; the fake does not send the raw items that open a thread."""
    real = [frame for frame in real if not _opens(frame.value)]
    return [difference.sentence() for difference in compare(masked(real), masked(fake), VERSION).differences]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with BackendProcess() as backend:
        yield Both(tmp_path_factory.mktemp("later"), VERSION, backend, FAKE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fake_says_what_the_real_one_says(kind: str, both: Both) -> None:
    @(lambda test: test if SEED is None else seed(int(SEED))(test))
    @settings(
        max_examples=SCENARIOS,
        deadline=None,
        database=None,
        derandomize=SEED is None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(KINDS[kind])
    def check(scenario: dict[str, Any]) -> None:
        if differences(*both.play(scenario)):
            found = differences(*both.play(scenario))
            assert found == [], (scenario, "differs twice")

    check()


def test_a_changed_frame_is_found(both: Both) -> None:
    scenario = {"script": [{"items": ["Hello."]}], "conversation": {"api": "v2", "steps": [{"text": "Go."}]}}
    real, fake = both.play(scenario)
    assert differences(real, fake) == []
    changed = [
        Frame(f.n, f.t, f.seam, f.sender, f.kind, f.raw.replace(b'"itemsView":"summary"', b'"itemsView":"full"')) for f in fake
    ]
    assert differences(real, changed) != []
    assert differences(real, fake[:-1]) != []
