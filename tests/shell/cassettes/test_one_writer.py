"""One recording has one writer: whoever comes later is refused or gets another file, and what is there is whole."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.redact.redactor import Redactor
from codex_replay.shell.cassettes.claim import claim
from codex_replay.shell.cassettes.file import CassetteError, CassetteReader, CassetteWriter
from codex_replay.shell.cassettes.rewrite import NotRewritten, WholeWriter

FAKE = str(Path(sys.executable).with_name("fake-codex"))
HEADER = Header("0.92.0", "unknown", "x", {"rpc": "recorded"})


def line(text: str) -> Frame:
    return Frame(0, 0.0, "rpc", "server", raw=text.encode() + b"\n")


def delta(text: str) -> Frame:
    params = f'{{"threadId":"t","turnId":"0","itemId":"m","delta":"{text}"}}'
    return line(f'{{"method":"item/agentMessage/delta","params":{params}}}')


def test_a_second_writer_is_refused_and_the_first_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    with CassetteWriter(path, HEADER) as first:
        first.write(line('{"method":"a"}'))
        with pytest.raises(CassetteError, match=r"a\.ndjson: another process records to this file.*\{pid\}"):
            CassetteWriter(path, HEADER)
        first.write(line('{"method":"b"}'))
    with CassetteReader(path) as reader:
        assert len(list(reader)) == 2
        assert not reader.truncated


def test_a_file_that_is_not_written_any_more_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text("old, and longer than what comes in its place" * 20)
    CassetteWriter(path, HEADER).close()
    CassetteWriter(path, HEADER).close()
    with CassetteReader(path) as reader:
        assert list(reader) == []


def test_force_replaces_what_is_done_and_refuses_what_is_being_recorded(tmp_path: Path) -> None:
    path = str(tmp_path / "a.ndjson")
    Path(path).write_text("old")
    assert claim(path, force=True) == path
    assert Path(path).read_bytes() == b""
    writer = CassetteWriter(path, HEADER)
    with pytest.raises(OSError, match="another process records") as caught:
        claim(path, force=True)
    assert caught.value.errno == errno.EBUSY
    assert writer.is_in_place
    assert claim(path) == str(tmp_path / "a.2.ndjson")
    writer.close()


def test_the_lock_lasts_until_the_secrets_in_pieces_are_out(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    redactor = Redactor()
    writer = WholeWriter(CassetteWriter(path, HEADER), redactor)
    writer.write(delta("It is ghp_"))
    writer.write(delta("abcdefghijklmnopqrstuvwxyzABCDEF6789."))
    writer.close()
    with pytest.raises(CassetteError, match="another process"):
        CassetteWriter(path, HEADER)
    assert writer.rewrite().frames
    assert b"abcdefghij" not in path.read_bytes()
    CassetteWriter(path, HEADER).close()


def test_a_file_that_took_the_place_is_not_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    writer = WholeWriter(CassetteWriter(path, HEADER), Redactor())
    writer.write(delta("It is ghp_"))
    writer.write(delta("abcdefghijklmnopqrstuvwxyzABCDEF6789."))
    writer.close()
    other = tmp_path / "other"
    other.write_text("another recording")
    os.replace(other, path)
    with pytest.raises(NotRewritten, match="another file now has this name"):
        writer.rewrite()
    assert path.read_text() == "another recording"


def test_a_start_without_space_leaves_no_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "a.ndjson"
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(CassetteError, match="No space left"):
            CassetteWriter(path, HEADER)
    assert not path.exists()


def test_clients_with_one_capture_get_a_file_each(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "FAKE_CODEX_CAPTURE": str(tmp_path / "sent.ndjson")}
    hello = b'{"id":0,"method":"initialize","params":{"clientInfo":{"name":"x","version":"1"}}}\n'
    fakes = [
        subprocess.Popen([FAKE, "app-server"], env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    told = [fake.communicate(hello)[1] for fake in fakes]
    assert [fake.returncode for fake in fakes] == [0] * 4, told
    names = sorted(path.name for path in tmp_path.glob("sent*"))
    assert names == ["sent.2.ndjson", "sent.3.ndjson", "sent.4.ndjson", "sent.ndjson"]
    for name in names:
        with CassetteReader(tmp_path / name) as reader:
            assert [frame.raw for frame in reader] == [hello]
            assert not reader.truncated
    assert sum(b"already exists and was not changed" in text for text in told) == 3
