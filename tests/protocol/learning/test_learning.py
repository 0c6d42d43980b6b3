"""The tables that are learnt from two runs: what differs by nature is masked, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.protocol import data_tables
from codex_replay.protocol.learning import causes
from codex_replay.protocol.learning.leaves import leaves
from codex_replay.protocol.learning.masks import by_text
from codex_replay.protocol.learning.normal import Learnt, Pair, learn

BASE = data_tables.load("learning", data_tables.ANY)
THREAD, TURN = "01a20898-9adf-7633-8cc1-e495568fcef1", "01a20898-9ae7-7aa1-b3b4-8bd4e8bd6b10"
NOW = 1_795_440_547


def frames(*rows: tuple[str, dict[str, Any]]) -> list[Frame]:
    """Return rpc frames, "c" of the client and "s" of the server."""
    sides = {"c": "client", "s": "server"}
    return [
        Frame(n, n / 10, "rpc", sides[side], "msg", json.dumps(message).encode() + b"\n")
        for n, (side, message) in enumerate(rows, 1)
    ]


def notice(method: str, **params: Any) -> tuple[str, dict[str, Any]]:
    return "s", {"method": method, "params": params}


def learned(left: list[Any], right: list[Any]) -> Learnt:
    return learn([Pair("case", frames(*left), frames(*right))], BASE, "a test", "/home/user")


@pytest.mark.parametrize(
    ("key", "left", "right", "what"),
    [
        ("emittedAtMs", NOW * 1000, NOW * 1000 + 70, "time"),
        ("createdAt", NOW, NOW + 1, "time"),
        ("tookMs", 5, 70, "duration"),
        ("revision", 7, 9, "number"),
        ("since", "2026-11-23T13:29:00.511Z", "2026-11-23T13:29:55.723Z", "time"),
        ("folder", "/tmp/a", "/tmp/b", "path"),
        ("hash", "ab12cd34ef", "99aa88bb77", "random"),
    ],
)
def test_what_differs_by_nature_is_masked(key: str, left: Any, right: Any, what: str) -> None:
    found = learned([notice("x", **{key: left})], [notice("x", **{key: right})])
    assert (found.table["keys"][key], found.equal, found.unexplained) == (what, ["case"], {})
    assert [(row.part, row.rule, row.seen) for row in found.rows] == [("keys", key, ["case"])]


def test_a_key_of_paths_below_the_home_is_masked_although_the_runs_do_not_differ() -> None:
    """Each run of the suite has the same name for its directory."""
    run = [notice("x", roots=["/home/user/work"], text="/home/user/a", details=["/home/user/b", "Enable it.", "It is old."])]
    found = learned(run, run)
    assert [(row.part, row.rule, row.seen) for row in found.rows] == [("keys", "roots", ["case"])]
    assert {key: what for key, what in found.table["keys"].items() if key not in BASE["keys"]} == {"roots": "path"}


@pytest.mark.parametrize(
    ("key", "left", "right"),
    [
        ("total_tokens", 5, 7),
        ("text", "yes", "no"),
        ("status", "completed", "failed"),
        ("id", "msg_1_0", "msg_2_0"),
        ("inputTokens", 10, 12),
        ("flag", True, False),
        ("member", None, 5),
        ("list", [1], [1, 2]),
    ],
)
def test_what_carries_meaning_is_never_masked(key: str, left: Any, right: Any) -> None:
    """A rule for it would hide a true difference."""
    found = learned([notice("x", **{key: left})], [notice("x", **{key: right})])
    assert (found.rows, found.equal, list(found.unexplained)) == ([], [], ["case"])
    assert found.table["keys"] == BASE["keys"]


def test_an_object_in_another_order_is_learnt() -> None:
    found = learned([notice("x", bag={"a": 1, "b": 2})], [notice("x", bag={"b": 2, "a": 1})])
    assert (found.table["unordered_keys"], found.equal) == (["bag"], ["case"])


def test_frames_in_both_orders_are_a_race_and_a_lost_frame_is_not() -> None:
    one, other, third = (notice(name, threadId=THREAD) for name in ("one", "other", "third"))
    found = learned([one, other, third], [other, one, third])
    races = [*BASE["races"], {"between": [["rpc< one"], ["rpc< other"]], "why": "Seen in both orders in two runs of case."}]
    assert found.table["races"] == races
    assert found.equal == ["case"]
    lost = learned([one, other], [one])
    assert (lost.table["races"], lost.unexplained) == (BASE["races"], {"case": "rpc< other is only in one run"})


def test_a_number_inside_a_text_is_masked_after_its_words() -> None:
    left, right = (f'{{"started_ms":{time},"model":"m"}}' for time in (NOW * 1000, NOW * 1000 + 5))
    (row,) = by_text(left, right)
    assert row["has"] == ['"started_ms":']
    found = learned([notice("x", note=left)], [notice("x", note=right)])
    assert found.equal == ["case"]
    assert by_text("12 of 20", "13 of 20") == [], "no words are before it"
    assert by_text("the thread <uuid:1>", "the thread <uuid:2>") == [], "the normaliser gave that number"


def test_leaves_name_headers() -> None:
    left, right = ({"headers": [["Date", value], ["etag", "a"]]} for value in ("1", "2"))
    assert [(leaf.path, leaf.left, leaf.right) for leaf in leaves(left, right)] == [(("headers", "date"), "1", "2")]


def turn(status: str, **more: Any) -> dict[str, Any]:
    return {"threadId": THREAD, "turn": {"id": TURN, "status": status, **more}}


OPENED = [
    ("c", {"id": 1, "method": "thread/start", "params": {}}),
    ("s", {"id": 1, "result": {"thread": {"id": THREAD}}}),
    notice("tools/ready", threadId=THREAD),
    ("c", {"id": 2, "method": "turn/start", "params": {"threadId": THREAD}}),
    ("s", {"id": 2, "result": {"turn": {"id": TURN, "status": "inProgress"}}}),
    notice("status", threadId=THREAD),
    notice("tools/ready", threadId=THREAD),
    notice("turn/started", **turn("inProgress")),
]


def test_causes_are_learnt_from_an_interrupted_turn() -> None:
    run = [
        *OPENED,
        ("c", {"id": 3, "method": "turn/interrupt", "params": {"threadId": THREAD}}),
        ("s", {"id": 3, "result": {}}),
        notice("status", threadId=THREAD),
        notice("turn/completed", **turn("interrupted")),
    ]
    table, rows = causes.learn([("case", frames(*run))])
    assert table == {
        "opens_turn": ["turn/start"],
        "reopens_thread": [],
        "interrupts": ["turn/interrupt"],
        "interrupted_by_request": ["status", "turn/completed"],
        "replaced_by_turn": [],
        "ends_turn": ["turn/completed"],
        "follows_request": ["status"],
        "steers": [],
        "reaches_threads": [],
    }
    assert {"part": "opens_turn", "rule": "turn/start", "seen": 1} in rows


def test_a_request_that_names_the_running_turn_steers_it() -> None:
    steered = [
        ("c", {"id": 3, "method": "turn/steer", "params": {"threadId": THREAD}}),
        ("s", {"id": 3, "result": {"turnId": TURN}}),
    ]
    table, _ = causes.learn([("case", frames(*OPENED, *steered, notice("turn/completed", **turn("completed"))))])
    assert (table["steers"], table["interrupts"]) == (["turn/steer"], [])


RELOAD = [
    ("c", {"id": 8, "method": "tools/reload", "params": {}}),
    notice("tools/ready", threadId=THREAD),
    ("s", {"id": 8, "result": {}}),
]
LISTED = [("c", {"id": 9, "method": "tools/list", "params": {}}), ("s", {"id": 9, "result": {}})]


def test_a_request_reaches_all_threads_if_idle_threads_repeat_what_they_said_unasked() -> None:
    ended = notice("turn/completed", **turn("completed"))
    table, _ = causes.learn([("case", frames(*OPENED, ended, *RELOAD, *LISTED))])
    assert table["reaches_threads"] == ["tools/reload"]
    again = [("c", {"id": 9, "method": "tools/list", "params": {}}), RELOAD[1], LISTED[1]]
    table, _ = causes.learn([("case", frames(*OPENED, ended, *LISTED, *again))])
    assert table["reaches_threads"] == []
    table, _ = causes.learn([("case", frames(*OPENED, *RELOAD))])
    assert table["reaches_threads"] == []


def test_a_notification_of_no_thread_follows_requests_if_each_came_while_one_was_unanswered() -> None:
    notices = [notice("deprecated"), notice("limits")]
    run = [*OPENED, LISTED[0], *notices, LISTED[1]]
    assert causes.learn([("case", frames(*run))])[0]["follows_request"] == ["deprecated", "limits", "status"]
    assert causes.learn([("case", frames(*run, notices[1]))])[0]["follows_request"] == ["deprecated", "status"]
    start = [("c", {"id": 0, "method": "initialize", "params": {}}), notices[0], ("s", {"id": 0, "result": {}})]
    assert causes.learn([("case", frames(*start))])[0]["follows_request"] == []


def test_what_comes_in_a_thread_that_the_server_opened_contradicts_nothing() -> None:
    """No request ever names the thread of a detached review; its status is that of the review's request."""
    detached = [
        ("c", {"id": 3, "method": "review/start", "params": {"threadId": THREAD, "delivery": "detached"}}),
        ("s", {"id": 3, "result": {"turn": {"id": "another"}, "reviewThreadId": "detached"}}),
        notice("status", threadId="detached"),
    ]
    assert causes.learn([("case", frames(*OPENED, *detached))])[0]["follows_request"] == ["status"]
    own = [("c", {"id": 4, "method": "thread/start", "params": {}}), ("s", {"id": 4, "result": {"thread": {"id": "other"}}})]
    assert causes.learn([("case", frames(*OPENED, *own, notice("status", threadId="other")))])[0]["follows_request"] == []


def test_a_turn_that_ends_by_itself_shows_no_interrupt() -> None:
    table, _ = causes.learn([("case", frames(*OPENED, notice("turn/completed", **turn("completed"))))])
    assert (table["interrupts"], table["interrupted_by_request"], table["ends_turn"]) == ([], [], ["turn/completed"])


def test_the_learnt_table_has_the_rows_of_a_packaged_one() -> None:
    assert set(causes.ROWS) == set(data_tables.load("causality"))
    assert set(BASE) == set(data_tables.load("normalise"))
