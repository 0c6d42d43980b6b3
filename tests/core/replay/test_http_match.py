"""Which recorded exchange answers a request: the pure part, by properties and by examples."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.cassette.http_frames import request_payload
from codex_replay.core.normalise.normaliser import Rules
from codex_replay.core.replay.http_match import HttpMiss, HttpPlayer, HttpTrack, Recorded
from codex_replay.core.replay.match import Matcher
from codex_replay.core.replay.match_on import BadMatchOn, MatchOn, without_numbers
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol import data_tables

RULES = Rules(data_tables.load("normalise"))
leaves = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=6)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=8
)


def asked(body: Any, *, path: str = "/v1/responses", headers: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    return request_payload("POST", path, headers, dumps(body))


def track(*payloads: dict[str, Any], conns: tuple[int, ...] = ()) -> HttpTrack:
    frames: list[Frame] = []
    for i, payload in enumerate(payloads):
        conn = conns[i] if conns else i
        frames.append(Frame(2 * i + 1, 0.0, "http", "client", "request", payload=payload, conn=conn))
        frames.append(Frame(2 * i + 2, 0.0, "http", "server", "close", payload="end", conn=conn))
    return HttpTrack("t.ndjson", frames, lambda: RULES)


def play(player: HttpPlayer, payload: dict[str, Any], conn: int = 1) -> Recorded | HttpMiss:
    found = player.find(conn, payload)
    if isinstance(found, Recorded):
        player.use(conn, found, payload)
    return found


@given(st.lists(values, min_size=1, max_size=5, unique_by=dumps), st.randoms())
def test_each_request_finds_itself_in_any_order(bodies: list[Any], random: Any) -> None:
    player = HttpPlayer([track(*(asked({"body": body}) for body in bodies))])
    order = list(range(len(bodies)))
    random.shuffle(order)
    for i in order:
        found = play(player, asked({"body": bodies[i]}))
        assert isinstance(found, Recorded)
        assert found.request.n == 2 * i + 1
    assert player.unused() == []
    assert isinstance(play(player, asked({"body": bodies[0]})), HttpMiss)


@given(values, values)
def test_bodies_match_exactly_if_they_are_equal_values(one: Any, other: Any) -> None:
    found = HttpPlayer([track(asked({"input": one}))]).find(1, asked({"input": other}))
    # The compact JSON tells 1 from true and 0 from -0 apart, as values do on the wire; two masked strings may be equal.
    same = dumps(one) == dumps(other)
    if same:
        assert isinstance(found, Recorded)
    elif RULES.mask("input", one) == one and RULES.mask("input", other) == other:
        keys_apart = isinstance(one, dict) and isinstance(other, dict) and one == other
        assert isinstance(found, HttpMiss) or keys_apart or one == other


@pytest.mark.parametrize("words", [["bodies"], ["path.x"], ["body."], ["-"], [""], ["-body"], []])
def test_what_is_no_part_is_a_sentence(words: list[str]) -> None:
    with pytest.raises(BadMatchOn, match=r"is not a part of a request|is compared"):
        MatchOn(words)


def test_the_parts_of_a_request() -> None:
    payload = asked({"a": {"b": 1, "c": 2}, "d": 3}, path="/x?y=1", headers=(("Host", "h"), ("X-A", "1"), ("x-b", "2")))
    assert MatchOn(["method", "path"]).view(payload) == {"method": "POST", "target": "/x?y=1"}
    whole = {**payload, "path": "http://host:1/x?y=a://b"}
    assert MatchOn(["path"]).view(whole) == {"target": "/x?y=a://b"}
    assert MatchOn(["path"]).view({**payload, "path": "/x?y=a://b"}) == {"target": "/x?y=a://b"}
    assert MatchOn(["body", "-body.a.b", "-body.nothing.x"]).view(payload) == {"body": {"a": {"c": 2}, "d": 3}}
    assert MatchOn(["body.a", "body.a.b", "body.x"]).view(payload) == {"body.a": {"b": 1, "c": 2}, "body.a.b": 1, "body.x": None}
    assert MatchOn(["headers"]).view(payload) == {"headers.x-a": "1", "headers.x-b": "2"}
    assert MatchOn(["headers", "-headers.X-A"]).view(payload) == {"headers.x-b": "2"}
    assert MatchOn(["body", "headers.X-a", "-headers"]).view(payload) == {"body": {"a": {"b": 1, "c": 2}, "d": 3}}
    assert payload["body"] == {"a": {"b": 1, "c": 2}, "d": 3}  # what is left out is left out of a copy


def test_pipelined_requests_have_their_answers_in_order() -> None:
    def frame(n: int, sender: str, kind: str, payload: Any) -> Frame:
        return Frame(n, 0.0, "http", sender, kind, payload=payload, conn=1)

    frames = [frame(1, "client", "request", asked(1)), frame(2, "client", "request", asked(2))]
    frames += [frame(n, "server", kind, payload) for n, kind, payload in ((3, "response", {}), (4, "close", "end"))]
    frames += [frame(n, "server", kind, payload) for n, kind, payload in ((5, "response", {}), (6, "close", "cut"))]
    one, two = HttpTrack("t", frames, lambda: RULES).exchanges
    assert [f.n for f in one.answer] == [3]
    assert [f.n for f in two.answer] == [5]
    assert one.close is not None
    assert two.close is not None
    assert (one.close.payload, two.close.payload) == ("end", "cut")


def test_a_request_that_was_broken_off_is_never_asked_again() -> None:
    frame = Frame(1, 0.0, "http", "client", "request", payload=asked({}), conn=1, extra={"truncated": True})
    assert HttpTrack("t", [frame], lambda: RULES).exchanges == []


def test_a_live_connection_goes_on_with_another_recorded_one_when_its_own_has_ended() -> None:
    player = HttpPlayer([track(asked(1), asked(2), asked(3), conns=(1, 1, 2))], by="connection")
    order = [play(player, asked("any")) for _ in range(3)]
    assert [found.request.n for found in order if isinstance(found, Recorded)] == [1, 3, 5]


def test_the_nearest_is_the_one_with_the_fewest_differences_and_not_of_another_path() -> None:
    player = HttpPlayer(
        [track(asked({"a": 1, "b": 2, "c": 3}, path="/v1/other"), asked({"a": 1, "b": 0, "c": 0}), asked({"x": 1}))]
    )
    found = player.find(1, asked({"a": 1, "b": 2, "c": 3}))
    assert isinstance(found, HttpMiss)
    assert found.nearest is not None
    assert found.nearest.request.n == 3
    assert (found.path, len(found.differences)) == ("body.b", 2)
    assert "differs at body.b: recorded 0, got 2 (and in 1 more places)." in str(found)


def test_placeholders_are_equal_whatever_their_number() -> None:
    assert without_numbers({"a": ["redacted-token-7", "user-3@redacted.example"]}) == {
        "a": ["redacted-token-N", "user-N@redacted.example"]
    }
    assert without_numbers("user-3 said") == "user-3 said"


@pytest.mark.parametrize(
    ("words", "same", "other"),
    [
        (["body.metadata", "-body.metadata.user"], {"metadata": {"user": "b", "x": 1}}, {"metadata": {"user": "a", "x": 2}}),
        (["body.a.b", "-body.a.b.c.d"], {"a": {"b": {"c": {"d": 2, "e": 1}}}}, {"a": {"b": {"c": {"d": 1, "e": 2}}}}),
        (["body.a", "-body"], {"a": 1}, None),
        (["body", "body.metadata", "-body.metadata.user"], {"metadata": {"user": "b", "x": 1}}, {"metadata": {"x": 2}}),
        (["body", "-body.userId"], {"userid": 1, "userId": 3}, {"userid": 2}),
        (["body.userId", "-body.userid"], {"userId": 1, "userid": 5}, {"userId": 2}),
        (["body.userId", "body.userid", "-body.userId"], {"userId": 5}, {"userid": 2}),
    ],
)
def test_an_exclusion_reaches_into_the_part_that_is_compared(words: list[str], same: Any, other: Any) -> None:
    """`same` differs from the recorded body in what is left out alone, `other` in something else."""
    recorded = {
        "metadata": {"user": "a", "x": 1},
        "a": {"b": {"c": {"d": 1, "e": 1}}},
        "userid": 1,
        "userId": 1,
    }
    over = MatchOn([*words, "method"])
    whole = over.view(asked(recorded))
    assert over.view(asked({**recorded, **same})) == whole
    if other is not None:
        assert over.view(asked({**recorded, **other})) != whole


@pytest.mark.parametrize("words", [["-path"], ["path", "-path"], ["body.a", "headers.x", "-body", "-headers.x"]])
def test_to_compare_nothing_is_refused(words: list[str]) -> None:
    with pytest.raises(BadMatchOn, match="is compared"):
        MatchOn(words)


@pytest.mark.parametrize(("one", "other"), [(False, 0), (True, 1), ([False], [0]), ({"a": [1]}, {"a": [True]})])
def test_false_is_not_zero_and_true_is_not_one(one: Any, other: Any) -> None:
    for recorded, live in ((one, other), (other, one)):
        assert isinstance(HttpPlayer([track(asked({"body": recorded}))]).find(1, asked({"body": live})), HttpMiss)
        assert Matcher(lambda: RULES).differences({"method": "a", "params": recorded}, {"method": "a", "params": live})
