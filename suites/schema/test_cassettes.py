"""Every frame that a server wrote in a recorded cassette is valid and known: no false alarm, and no silent drift.

What clients wrote is judged by their own cases: some send bad input on purpose.
"""

from __future__ import annotations

from codex_replay.plugin.schema.fixtures import CheckedFrame


def test_server_frames_are_valid_and_known(cassette_frames: list[CheckedFrame]) -> None:
    """No frame of the server fails either verdict; the sentences name the frame, the path and the nearest known name."""
    found = [f"frame {f.n}: {v.message}" for f in cassette_frames if f.sender == "server" for v in f.violations]
    assert not found, "\n".join(found)
