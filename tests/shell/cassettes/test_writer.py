"""The writer of a cassette as a context: what went wrong inside leaves a truncated cassette."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter

HEADER = Header("unknown", "unknown", "x", {"rpc": "recorded"})


def frame() -> Frame:
    return Frame(0, 0.0, "rpc", "client", raw=b'{"id":1,"method":"a"}\n')


def test_a_context_that_ends_well_writes_the_footer(tmp_path: Path) -> None:
    with CassetteWriter(tmp_path / "c.ndjson", HEADER) as writer:
        writer.write(frame())
    with CassetteReader(tmp_path / "c.ndjson") as cassette:
        assert len(list(cassette)) == 1
        assert (cassette.footer is not None, cassette.truncated) == (True, None)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_leaves_the_file_without_a_footer(tmp_path: Path, error: type[BaseException]) -> None:
    writer = CassetteWriter(tmp_path / "c.ndjson", HEADER)
    with contextlib.suppress(error), writer:
        writer.write(frame())
        raise error
    with CassetteReader(tmp_path / "c.ndjson") as cassette:
        assert len(list(cassette)) == 1
        assert cassette.footer is None
        assert "cut short after line 2" in str(cassette.truncated)
    writer.close()  # and that stays so
    assert b'"end"' not in (tmp_path / "c.ndjson").read_bytes()
