"""Bodies that are read in parts: a body has the value that it has if it is read alone, or is read as a whole."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from codex_fakes.backend import bodies
from codex_fakes.backend.bodies import MOST_PARTS, Reader
from codex_replay.core.wire.client_json import read
from codex_replay.core.wire.json_text import NotJson, compact
from codex_replay.shell.http.backend_process import BackendProcess
from tests.fakes.backend.test_backend import ask

TOOLS = [{"type": "function", "name": f"tool_{i}", "parameters": {"type": "object", "required": ["a"]}} for i in range(2)]
GOOD = b'{"model":"m","input":[{"a":[1,{"b":2}]},{"c":"]"}],"tools":[{"t":[]}],"stream":true}'
ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": 'a "quoted" text, ],"tools":[ and é'}]}


@pytest.fixture(autouse=True)
def _short_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "IN_PARTS", range(1 << 20))


def body(items: list[Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "instructions": "Be brief.", "input": items, "tools": TOOLS, "stream": True, **more}


def written(value: Any, spaces: bool = False) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=None if spaces else (",", ":")).encode()


def items(count: int) -> list[Any]:
    return [{**ITEM, "number": i} for i in range(count)]


def alone(data: bytes) -> Any:
    try:
        return read(data)
    except NotJson:
        return NotJson


def compare(reader: Reader, data: bytes) -> int | None:
    """Read a body; return the size of its new parts, None if it was not divided."""
    value, parts, new = reader.read(data)
    if value is None:
        assert (parts, new) == ((), 0)
        return None
    assert compact(value) == compact(alone(data))
    assert b"".join(parts) == data
    return new


@pytest.mark.parametrize("spaces", [False, True])
def test_the_next_request_of_a_conversation_costs_what_is_new(spaces: bool) -> None:
    reader = Reader()
    first = written(body(items(3)), spaces)
    assert compare(reader, first) == len(first)
    assert compare(reader, first) == 0
    second = written(body(items(5)), spaces)
    assert compare(reader, second) == len(second) - len(first)
    assert reader.read(second)[1][:2] == reader.read(first)[1][:2], "the ledger keeps them once"


def test_another_conversation_shares_its_first_items() -> None:
    reader = Reader()
    compare(reader, written(body(items(9))))
    changed = written(body([*items(7), {"other": 1}]))
    compare(reader, changed)
    again = written(body([*items(7), {"third": 1}]))
    assert compare(reader, again) == len(',{"third":1}')


@pytest.mark.parametrize("more", [{"prompt_cache_key": "other"}, {"instructions": "Be long."}])
def test_a_changed_head_or_tail_leaves_the_rest_shared(more: dict[str, Any]) -> None:
    reader = Reader()
    first, other = written(body(items(9))), written(body(items(9), **more))
    compare(reader, first)
    assert 0 < (compare(reader, other) or 0) < 300 < len(written(items(9)))


def test_a_long_conversation_has_few_parts() -> None:
    reader = Reader()
    for count in range(1, 3 * MOST_PARTS):
        assert compare(reader, written(body(items(count)))) is not None
        assert len(reader._items) <= MOST_PARTS


@pytest.mark.parametrize(
    "data",
    [
        GOOD.replace(b'"m"', b'"x\\"input\\":["'),
        GOOD.replace(b'"model":"m"', b'"input":[7],"model":"m"'),
        GOOD.replace(b'"stream":true', b'"input":["last"]'),
        GOOD.replace(b'"stream":true', b'"model":2'),
        GOOD.replace(b'"input":[', b'"other":['),
        GOOD.replace(b'"input":[', b'"input":[['),
        GOOD.replace(b'"input":[', b'"input":[,'),
        GOOD.replace(b'"input":[', b'"input":[ '),
        GOOD.replace(b'],"tools"', b',],"tools"'),
        GOOD.replace(b'],"tools"', b'],[1],"tools"'),
        GOOD.replace(b'],"tools"', b'\x0b],"tools"'),
        GOOD.replace(b'],"tools"', b']\x0b,"tools"'),
        GOOD.replace(b'],"tools"', b'] ,\n "tools"'),
        GOOD.replace(b'],"tools"', b'},"tools"'),
        GOOD.replace(b'"]"}]', b'"]"}],[{"c":"]"}]'),
        GOOD.replace(b'"]"}]', b'"]"}{"c":"]"}]'),
        GOOD.replace(b'"]"}]', b'"]"}1{"c":"]"}]'),
        GOOD.replace(b'"]"}]', b'"]"} , {"c":"]"}]'),
        GOOD.replace(b'{"c":"]"}', b"12"),
        GOOD.replace(b'"input"', b'"a\\"input"'),
        GOOD.replace(b'"input":', b'"input":[1],"a\\"input":'),
        GOOD.replace(b'"input":[', b'"metadata":{"input":[').replace(b',"stream"', b'},"stream"'),
        GOOD.replace(b'"stream":true', b'"more":{"x":[1],"tools":2}'),
        GOOD[:-1],
        GOOD + b" ",
        GOOD + b"}",
        b"[" + GOOD,
        b'{"input":[],"tools":[]}',
        b'{"input":[1],"tools":[]}',
        b'{"input":"text","tools":[]}',
        b'{"tools":[],"input":[]}',
        b"",
        b'\xff{"input":[1],"tools":[]}',
        GOOD.replace(b'"m"', b"1e999"),
    ],
)
def test_no_other_form_of_a_body_is_read_differently(data: bytes) -> None:
    for before in (None, GOOD, GOOD.replace(b'{"c":"]"}', b"1")):
        reader = Reader()
        if before is not None:
            assert compare(reader, before) is not None
        for _ in range(2):
            compare(reader, data)
            assert compare(reader, GOOD) is not None


def test_a_head_and_a_tail_do_not_overlap() -> None:
    reader = Reader()
    assert compare(reader, b'{"b":[],"tools":[],"input":[5],"tools":[],"input":[2]}') is not None
    compare(reader, b'{"b":[],"tools":[],"input":[2]}')


def mutated(rnd: random.Random) -> Iterator[bytes]:
    """Yield bodies in which small texts were inserted, deleted or repeated."""
    signs = [b"[", b"]", b"{", b"}", b",", b'"', b":", b"\\", b" ", b"1", b'"input":[', b'],"tools":[', b"},{", b"],[", b"\x0c"]
    while True:
        data = GOOD
        for _ in range(rnd.randint(1, 3)):
            at = rnd.randrange(len(data))
            end = min(len(data), at + rnd.choice((0, 0, 1, 2, 9)))
            data = data[:at] + rnd.choice((b"", rnd.choice(signs), data[at:end] * 2)) + data[end:]
        yield data


def test_random_bodies_are_read_as_they_are_read_alone() -> None:
    rnd, reader, divided = random.Random(18), Reader(), 0
    for data, _ in zip(mutated(rnd), range(5000), strict=False):
        divided += compare(reader, data) is not None
        if rnd.random() < 0.2:
            compare(reader, GOOD)
    assert divided > 500


@pytest.mark.parametrize("place", ["head", "items", "tail"])
@pytest.mark.parametrize("depth", [125, 126, 127, 128])
def test_a_part_may_be_as_deep_as_in_the_whole_body(place: str, depth: int) -> None:
    deep: Any = 0
    for _ in range(depth):
        deep = [deep]
    given = {"head": {"metadata": deep, **body(items(1))}, "items": body([deep]), "tail": body(items(1), metadata=deep)}
    data = written(given[place])
    assert (compare(Reader(), data) is not None) == (alone(data) is not NotJson)


def test_a_body_that_is_too_long_or_short_is_read_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for limits, divided in ((range(len(GOOD)), False), (range(len(GOOD) + 1), True), (range(len(GOOD) + 1, 9999), False)):
        monkeypatch.setattr(bodies, "IN_PARTS", limits)
        assert (compare(Reader(), GOOD) is not None) == divided


def test_nothing_changes_the_shared_values_and_the_ledger_has_what_was_sent() -> None:
    """The same requests get the same answers five times, and each body is in the ledger as it came."""
    call = {"type": "function_call", "call_id": "c", "name": "tool_0", "arguments": "{}"}
    first = [{"type": "message", "role": "user", "content": "a long text " * 400}]
    second = [*first, call, {"type": "function_call_output", "call_id": "c", "output": "5"}]
    variants: list[dict[str, Any]] = [
        {},
        {"stream": False},
        {"store": False, "metadata": {"a": "b"}},
        {"text": {"verbosity": "low"}},
    ]
    with BackendProcess() as backend:
        session = backend.session("shared", {"turns": [{"items": ["Hello."], "times": "always"}]})
        conversation = json.loads(ask(session.url + "/v1/conversations", {})[2])["id"]
        sent, answers = [], set()
        for _ in range(5):
            for k, more in enumerate([*variants, {"conversation": conversation}]):
                for given in (first, second):
                    sent.append(body(given, **more))
                    status, _, answer = ask(session.url + "/v1/responses", sent[-1])
                    assert status == 200, answer
                    answers.add((k, given is first, re.sub(rb"[\d_]+", b"", answer)))
        entries = [entry for entry in session.ledger() if entry["path"].endswith("/responses")]
    assert [entry["body"] for entry in entries] == sent
    assert len({answer[:2] for answer in answers}) == len(answers)
