"""The short way of a delta through the recorder (`Streams.carry_on`) writes what the long way writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.redact.streamed import Streams
from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.cassettes.file import CassetteWriter
from codex_replay.shell.cassettes.rewrite import WholeWriter

HEADER = Header("0.92.0", "unknown", "x", {"rpc": "recorded"})
KEY = "ghp_" + "aB3d" * 9
texts = st.sampled_from(
    [KEY[:9], KEY[9:20], KEY[20:], KEY, "", "ann@ex", "ample.org", '","delta":"', "\\", "é", "\n", "\x7f", "}"]
)
texts |= st.text(max_size=5)


def delta(method: str, thread: str, text: str, last: str = "") -> bytes:
    params: dict[str, Any] = {"threadId": thread, "turnId": "0", "itemId": "m", "delta": text}
    return dumps({"method": method, "params": params | ({"last": last} if last else {})}) + b"\n"


def v1(text: str) -> bytes:
    message = {"type": "agent_message_delta", "delta": text}
    return (
        dumps({"method": "codex/event/agent_message_delta", "params": {"id": "0", "msg": message, "conversationId": "c"}}) + b"\n"
    )


lines = st.one_of(
    st.builds(delta, st.sampled_from(["item/agentMessage/delta", "item/x"]), st.sampled_from("ab"), texts),
    st.builds(delta, st.just("item/agentMessage/delta"), st.just("a"), texts, st.sampled_from(["", '"delta":"', KEY])),
    st.builds(v1, texts),
    st.just(b'{"method":"codex/event/agent_message","params":{"id":"0","msg":{},"conversationId":"c"}}\n'),
    st.just(b'{"method": "item/agentMessage/delta","params":{"threadId":"a","turnId":"0","itemId":"m","delta":"ghp_aB3d"}}\n'),
    st.just(b'{"method":"item/agentMessage/delta","params":{"threadId":"a","turnId":"0","itemId":"m","delta":"\xff"}}\n'),
    st.just(b'{"method":"item/agentMessage/delta","params":{"threadId":"a","turnId":"0","itemId":"m","delta":"x"}\n'),
    st.just(b'{"method":"item/agentMessage/delta","params":{"threadId":"a","turnId":"0","itemId":"m","delta":"'),
)


def written(path: Path, said: list[bytes]) -> tuple[bytes, Any]:
    writer = WholeWriter(CassetteWriter(path, HEADER), Redactor())
    for raw in said:
        writer.write(Frame(0, 0.0, "rpc", "server", raw=raw))
    writer.close()
    return path.read_bytes(), (writer.rewrite(), path.read_bytes())


@given(st.lists(lines, max_size=25))
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_ways_write_the_same(tmp_path: Path, said: list[bytes]) -> None:
    short = written(tmp_path / "c.ndjson", said)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Streams, "carry_on", lambda self, line, place: False)
        assert written(tmp_path / "c.ndjson", said) == short


def test_the_short_way_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    carry_on = Streams.carry_on
    monkeypatch.setattr(Streams, "carry_on", lambda self, line, place: taken.append(carry_on(self, line, place)) or taken[-1])
    said = [
        make(text) for text in ("Hello", " wor", "ld") for make in (v1, lambda text: delta("item/agentMessage/delta", "a", text))
    ]
    written(tmp_path / "c.ndjson", said)
    assert taken == [False, False, True, True, True, True]
