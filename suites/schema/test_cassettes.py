"""Every frame of a server in a recorded cassette is valid and has only known keys.

Frames of clients are not checked here, because some cases send bad input on purpose.
"""

from __future__ import annotations

from codex_replay.plugin.schema.fixtures import CheckedFrame


def test_server_frames_are_valid_and_known(cassette_frames: list[CheckedFrame]) -> None:
    """Each frame of the server is valid and has only known keys; a failure names the frame, the path and a similar known name."""
    found = [f"frame {f.n}: {v.message}" for f in cassette_frames if f.sender == "server" for v in f.violations]
    assert not found, "\n".join(found)
