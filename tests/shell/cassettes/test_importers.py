"""Imports: what other tools logged becomes frames, and what they cut is never taken for whole. The samples are authored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.recordings.codex_version import codex_version
from codex_replay.shell.cassettes.importers import READERS, ImportFailed, Source, proto_events, tee

DATA = Path(__file__).parents[2] / "data"


def read(form: str, *entries: Any) -> list[Frame]:
    lines = [entry if isinstance(entry, bytes) else dumps(entry) + b"\n" for entry in entries]
    return list(READERS[form](lines, Source("log")))


def sample(form: str) -> tuple[list[Frame], Source]:
    source = Source("log")
    return list(READERS[form]((DATA / f"{form}.ndjson").read_bytes().splitlines(keepends=True), source)), source


def test_a_tee_s_log_becomes_frames() -> None:
    frames, source = sample("tee")
    assert [frame.sender for frame in frames] == ["client", "server", "client", "client", "server", "server"]
    assert frames[0].raw.startswith(b'{"id":1,"method":"initialize"')
    assert frames[2].raw == b'{"method": "initialized"}\r\n', "a string is the very line of the wire"
    assert frames[4].raw == b"not json at all\n"
    assert [frame.t for frame in frames] == [0.0, 0.041, 0.042, 0.05, 0.06, 0.07]
    assert [frame.whole for frame in frames] == [True] * 5 + [False]
    assert not source.skipped


def test_proto_events_become_frames() -> None:
    """Both kinds of event become the calls and answers that they log; a payload that was cut is marked. (PAY-103)"""
    frames, source = sample("proto-events")
    assert [(frame.sender, frame.value.get("id"), frame.value.get("method"), frame.whole) for frame in frames] == [
        ("client", 1, "initialize", True),
        ("server", 1, None, True),
        ("client", 2, "newConversation", False),
        ("server", 2, None, True),
        ("client", 3, "sendUserTurn", False),
        ("server", 3, None, True),
        ("server", None, "codex/event/agent_message", True),
    ]
    assert frames[5].value["error"] == {"code": -32600, "message": "Invalid request"}
    assert frames[-1].t == 0.12
    assert sum(source.skipped.values()) == 3


@pytest.mark.parametrize("form", READERS)
def test_the_version_is_the_one_that_the_server_told(form: str) -> None:
    assert next(filter(None, map(codex_version, sample(form)[0]))) == "0.92.0"


SUBMISSION = {"phase": "backend_submission", "method": "sendUserTurn", "rpc_id": 4}
CUT: dict[str, Any] = {
    "a replaced payload": {"truncated": True, "preview": "x"},
    "a payload that became text": '{"conversationId":"1',
    "a nested string": {"items": [{"text": "hello …<truncated>"}]},
    "a marked string": {"text": "hello [truncated 120 bytes]"},
    "round brackets": {"text": "hello... (truncated)"},
}


@pytest.mark.parametrize("name", CUT)
def test_a_cut_payload_is_marked_in_both_formats(name: str) -> None:
    (frame,) = read("proto-events", {**SUBMISSION, "payload": CUT[name]})
    assert frame.extra == {"truncated": True}
    assert not frame.whole
    if not isinstance(CUT[name], str):
        (frame,) = read("tee", {"t": 0, "dir": "c2s", "msg": {"id": 4, "method": "x", "params": CUT[name]}})
        assert not frame.whole


@pytest.mark.parametrize(
    "payload", [{"text": "ends in …"}, {"text": "<truncated> is a word here"}, {"truncated": False}, {"truncated": True}, {}]
)
def test_a_whole_payload_is_not_marked(payload: Any) -> None:
    (frame,) = read("proto-events", {**SUBMISSION, "payload": payload})
    assert frame.whole
    assert frame.value == {"id": 4, "method": "sendUserTurn", "params": payload}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            {"event": "backend_submission", "method": "m", "params": {"a": 1}, "id": 1},
            ("client", {"id": 1, "method": "m", "params": {"a": 1}}),
        ),
        ({"type": "backend_io", "direction": "s2c", "id": 1, "result": {}}, ("server", {"id": 1, "result": {}})),
        ({"type": "backend_io", "id": 1, "error": {"code": 1}}, ("server", {"id": 1, "error": {"code": 1}})),
        ({"phase": "backend_io", "direction": "out", "method": "m", "payload": {}}, ("client", {"method": "m", "params": {}})),
        ({"phase": "backend_io", "method": "m", "payload": {}}, ("server", {"method": "m", "params": {}})),
        ({"phase": "backend_io", "direction": "in", "msg": {"id": 2, "result": 5}}, ("server", {"id": 2, "result": 5})),
        ({"phase": "backend_submission", "method": "m"}, ("client", {"method": "m"})),
    ],
)
def test_other_shapes_of_the_same_events_are_accepted(event: dict[str, Any], expected: tuple[str, Any]) -> None:
    (frame,) = read("proto-events", event)
    assert (frame.sender, frame.value) == expected


def test_times_of_every_kind_become_seconds_from_the_start() -> None:
    def times(*given: Any) -> list[float]:
        return [frame.t for frame in read("tee", *({"t": t, "dir": "c2s", "msg": {}} for t in given))]

    assert times(0.5, 1) == [0.5, 1.0]
    assert times(1769000000, 1769000001.5) == [0.0, 1.5]
    assert times(1769000000000, 1769000000250) == [0.0, 0.25]
    assert times("2026-01-21T12:00:00Z", "2026-01-21T12:00:01.5Z") == [0.0, 1.5]
    assert times(0.5, 0.4, None, "noon", 0.6) == [0.5, 0.5, 0.5, 0.5, 0.6], "never backwards, never a failure"


BAD: dict[str, tuple[str, bytes]] = {
    "no JSON": ("tee", b"hello\n"),
    "an array": ("tee", b"[]\n"),
    "no direction": ("tee", b'{"t":0,"msg":{}}\n'),
    "another direction": ("tee", b'{"t":0,"dir":"up","msg":{}}\n'),
    "no message": ("tee", b'{"t":0,"dir":"c2s"}\n'),
    "a lone surrogate": ("tee", b'{"t":0,"dir":"c2s","msg":{"a":"\\ud800"}}\n'),
    "proto no JSON": ("proto-events", b"hello\n"),
    "proto no method": ("proto-events", b'{"phase":"backend_submission"}\n'),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_told_with_its_number(name: str) -> None:
    form, line = BAD[name]
    with pytest.raises(ImportFailed, match=r"log, line 2: .*\.$"):
        read(form, b"\n", line)


@pytest.mark.parametrize("form", READERS)
def test_an_unfinished_last_line_is_left_out(form: str) -> None:
    data = (DATA / f"{form}.ndjson").read_bytes()
    source = Source("log")
    frames = list(READERS[form](data[:-20].splitlines(keepends=True), source))
    assert len(frames) == len(sample(form)[0]) - (form == "tee")
    assert source.skipped["an unfinished last line"] == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
KEYS = [
    "t",
    "ts",
    "dir",
    "msg",
    "phase",
    "event",
    "kind",
    "direction",
    "method",
    "rpc_id",
    "id",
    "payload",
    "params",
    "result",
    "error",
]
WORDS = st.sampled_from(["backend_io", "backend_submission", "rpc_request", "rpc_response", "inbound", "outbound", "c2s", "s2c"])


@given(st.dictionaries(st.sampled_from(KEYS), JSON | WORDS))
def test_no_object_crashes_an_importer(entry: dict[str, Any]) -> None:
    line = json.dumps(entry).encode() + b"\n"
    for reader in (tee, proto_events):
        try:
            for frame in reader([line], Source("log")):
                assert frame.sender in ("client", "server")
        except ImportFailed:
            pass
