"""Each packaged recording, played to its own client: what comes out is what was recorded, in an order that counts as the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.normalise.normaliser import Rules
from codex_replay.core.replay.causality import Methods
from codex_replay.core.replay.match import Matcher
from codex_replay.core.replay.player import Player
from codex_replay.core.replay.track import Track
from codex_replay.protocol.data_tables import load
from codex_replay.protocol.recordings.compare import compare
from codex_replay.shell.cassettes.file import CassetteReader
from tests.core.replay.players import Lines, drain, live

ROOT = Path(__file__).parents[3]
FOLDERS = {
    "0.92.0": ROOT / "cassettes" / "app_server",
    "0.169.0": ROOT / "harness" / "codex_replay" / "protocol" / "data" / "0.169.0" / "cassettes" / "app_server",
}


def played(frames: list[Frame], version: str) -> list[Frame]:
    """Return the run of a client that sends each recorded frame at once, and reads all that is released before it sends on."""
    methods = Methods(lambda: load("causality", version))
    player = Player([Track("recording", Lines(frames), methods, Matcher(lambda: Rules(load("normalise", version))))], "method")
    run: list[Frame] = []
    for frame in (one for one in frames if one.sender == "client"):
        refused = player.receive(live(frame.raw))
        assert refused is None, refused
        run.append(frame)
        run += [Frame(0, 0.0, "rpc", "server", raw=line) for line in drain(player)]
    for n, frame in enumerate(run, 1):
        frame.n = n
    return run


@pytest.mark.parametrize("version", FOLDERS)
def test_a_packaged_recording_comes_out_as_it_was_recorded(version: str) -> None:
    differ = {}
    files = sorted(FOLDERS[version].rglob("*.ndjson"))
    for file in files:
        with CassetteReader(file) as reader:
            frames = [frame for frame in reader if frame.seam == "rpc"]
        if differences := compare(frames, played(frames, version), version).differences:
            differ[f"{file.parent.name}/{file.stem}"] = [difference.sentence() for difference in differences][:2]
    assert len(files) > 100
    assert differ == {}
