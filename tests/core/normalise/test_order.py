"""The partial order: timings of one run share one canonical order, and what is really ordered keeps its order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.normalise.order import Mark, Marker, Order, canonical
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol import data_tables

TABLE = data_tables.load("normalise")
ORDER = Order(TABLE)


def rpc(sender: str, **message: Any) -> Frame:
    return Frame(0, 0.0, "rpc", sender, "msg", dumps(message) + b"\n")


def http(sender: str, conn: int, kind: str, payload: Any) -> Frame:
    return Frame(0, 0.0, "http", sender, kind, b"", payload, conn)


def note(method: str, thread: str = "t", **params: Any) -> Frame:
    return rpc("server", method=method, params={"threadId": thread, **params})


def labels(frames: list[Frame]) -> list[str]:
    marker = Marker(TABLE)
    marks = [marker.mark(frame) for frame in frames]
    return [f"{marks[index].label} {marks[index].thread or ''}".rstrip() for index in canonical(marks, ORDER)]


START = [rpc("client", id=1, method="thread/start"), rpc("server", id=1, result={"thread": {"id": "t"}})]
TURN = [rpc("client", id=2, method="turn/start", params={"threadId": "t"}), rpc("server", id=2, result={})]
MCP = rpc("server", method="codex/event/mcp_startup_complete", params={"conversationId": "t"})
STARTED = rpc("server", method="thread/started", params={"thread": {"id": "t"}})
USAGE = [
    note("codex/event/token_count"),
    note("thread/tokenUsage/updated"),
    rpc("server", method="account/rateLimits/updated", params={}),
]
BEGIN = [
    note("codex/event/exec_command_begin", msg={"call_id": "c"}),
    note("item/started", item={"type": "commandExecution", "id": "c"}),
]
END = [
    note("codex/event/exec_command_end", msg={"call_id": "c"}),
    note("item/completed", item={"type": "commandExecution", "id": "c"}),
]
ASKED = [rpc("client", id=5, method="model/list"), rpc("client", id=6, method="config/read")]
ANSWERED = [rpc("server", id=5, result={}), rpc("server", id=6, result={})]
TOUCHED = [
    rpc("client", id=number, method=name, params={"threadId": "t"}) for number, name in ((5, "thread/read"), (6, "thread/fork"))
]
REFUSED = rpc("server", id=5, error={"code": -32600, "message": "no"})
CONFIG = rpc("server", method="configWarning", params={})
STOP = rpc("client", id=9, method="turn/interrupt", params={"threadId": "t"})
ABORTED = rpc("server", method="codex/event/turn_aborted", params={"conversationId": "t"})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([*START, MCP, STARTED, *TURN], [*START, STARTED, *TURN, MCP]),
        ([*START, MCP, STARTED, *TURN], [*START, TURN[0], MCP, STARTED, TURN[1]]),
        ([*START, STARTED, *TURN], [*START, *TURN, STARTED]),
        ([*START, *USAGE, *BEGIN], [*START, *BEGIN, *USAGE]),
        ([*START, *USAGE, *BEGIN], [*START, BEGIN[0], *USAGE, BEGIN[1]]),
        ([*START, *USAGE, *END], [*START, *END, *USAGE]),
        ([*START, note("a"), note("b", "u")], [*START, note("b", "u"), note("a")]),
        ([*START, *ASKED, *ANSWERED], [*START, *ASKED, *reversed(ANSWERED)]),
        ([*START, ASKED[0], ANSWERED[0], ASKED[1], ANSWERED[1]], [*START, *ASKED, *reversed(ANSWERED)]),
        ([*START, *ASKED, ANSWERED[0], note("a"), ANSWERED[1]], [*START, *ASKED, ANSWERED[1], note("a"), ANSWERED[0]]),
        ([*START, *TOUCHED, REFUSED, note("a")], [*START, *TOUCHED, note("a"), REFUSED]),
    ],
)
def test_a_declared_race_makes_no_difference(one: list[Frame], other: list[Frame]) -> None:
    assert labels(one) == labels(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([*START, note("a"), note("b")], [*START, note("b"), note("a")]),
        ([*START, *USAGE], [*START, *reversed(USAGE)]),
        ([*START, *TOUCHED, ANSWERED[0], note("a"), ANSWERED[1]], [*START, *TOUCHED, ANSWERED[1], note("a"), ANSWERED[0]]),
        ([*START, ASKED[0], ANSWERED[0], CONFIG], [*START, ASKED[0], CONFIG, ANSWERED[0]]),
        ([*START, *BEGIN], [*START, *reversed(BEGIN)]),
        ([*START, *TURN, note("turn/started")], [*START, TURN[0], note("turn/started"), TURN[1]]),
        (START, START[::-1]),
        ([*START, *BEGIN, *END], [*START, *END, *BEGIN]),
        ([*START, STOP, ABORTED], [*START, ABORTED, STOP]),
        ([START[0], TURN[0]], [TURN[0], START[0]]),
        ([*START, MCP, note("codex/event/task_started")], [*START, note("codex/event/task_started"), MCP]),
    ],
)
def test_anything_else_out_of_place_shows(one: list[Frame], other: list[Frame]) -> None:
    assert labels(one) != labels(other)


def _exchange(conn: int, thread: str) -> list[Frame]:
    request = {"method": "POST", "path": "/v1/responses", "headers": [["session_id", thread]]}
    return [
        http("client", conn, "request", request),
        http("server", conn, "response", {"status": 200, "headers": []}),
        http("server", conn, "sse", {"event": "response.created"}),
        http("server", conn, "close", "end"),
    ]


def test_the_seams_are_free_of_each_other_but_for_causes() -> None:
    ask, answer, events = TURN[0], TURN[1], _exchange(1, "t")
    assert labels([*START, ask, answer, *events]) == labels([*START, ask, *events, answer])
    assert labels([*START, ask, answer, *events]) != labels([*START, *events, ask, answer])


def test_a_client_may_drop_a_connection_before_or_after_it_opens_the_next() -> None:
    head = {"method": "GET", "path": "/v1/responses", "headers": []}
    first = [http("client", 1, "request", head), http("client", 1, "ws", {"text": "a"}), http("server", 1, "ws", {"text": "b"})]
    dropped, opened = http("client", 1, "close", "cut"), http("client", 2, "request", head)
    rest = [http("server", 2, "response", {"status": 101, "headers": []})]
    assert labels([*first, dropped, opened, *rest]) == labels([*first, opened, dropped, *rest])
    assert labels([*first, dropped, opened, *rest]) != labels([first[0], dropped, *first[1:], opened, *rest])


def test_exchanges_of_two_threads_may_interleave_and_those_of_one_may_not() -> None:
    a, b = _exchange(1, "t"), _exchange(2, "u")
    threads = [note("thread/started", "t"), note("thread/started", "u")]
    assert labels([*threads, *a, *b]) == labels([*threads] + [frame for pair in zip(b, a, strict=True) for frame in pair])
    answers_swapped = [a[0], a[2], a[1], a[3]]
    assert labels(a) != labels(answers_swapped)


def test_a_connection_that_is_used_again_is_another_exchange() -> None:
    assert labels([*_exchange(1, "t"), *_exchange(1, "t")]) == labels([*_exchange(1, "t"), *_exchange(2, "t")])


def test_answers_to_one_method_are_compared_in_the_order_of_their_requests() -> None:
    asked = [rpc("client", id=n, method="thread/read", params={"threadId": "t"}) for n in (5, 6)]
    answers = [rpc("server", id=n, result={"n": n}) for n in (5, 6)]

    def line(frames: list[Frame]) -> list[Any]:
        marker = Marker(TABLE)
        return [frames[index].value for index in canonical([marker.mark(frame) for frame in frames], ORDER)]

    assert line([*START, *asked, *answers]) == line([*START, *asked, *reversed(answers)])


def test_parallel_commands_run_in_no_fixed_order() -> None:
    def run(item: str) -> list[Frame]:
        return [
            note("codex/event/exec_command_begin", msg={"call_id": item}),
            note("item/completed", item={"type": "commandExecution", "id": item}),
        ]

    assert labels([*run("a"), *run("b")]) == labels([*run("b"), *run("a")])
    assert labels(run("a")) != labels(run("a")[::-1])


MARKS = st.lists(
    st.builds(
        lambda lane, name, thread: Mark(lane, f"{lane} {name}", thread),
        st.sampled_from(["rpc>", "rpc<", "http>"]),
        st.sampled_from(
            ["thread/started", "turn/started", "response to x", "codex/event/mcp_startup_complete", "turn/start", "POST /"]
        ),
        st.sampled_from([None, "t", "u"]),
    ),
    max_size=12,
)


@given(MARKS)
def test_canonical_keeps_every_ordered_pair(marks: list[Mark]) -> None:
    line = canonical(marks, ORDER)
    assert sorted(line) == list(range(len(marks)))
    place = {index: position for position, index in enumerate(line)}
    for i in range(len(marks)):
        for j in range(i + 1, len(marks)):
            if ORDER.ordered(ORDER.kind_of(marks[i]), ORDER.kind_of(marks[j])):
                assert place[i] < place[j]


def _sight(marks: list[Mark]) -> list[str | None]:
    """The threads in the order in which they are first seen: in what the client says, then the server, then over http."""
    lanes = ("rpc>", "rpc<", "http>")
    return list(dict.fromkeys(mark.thread for lane in lanes for mark in marks if mark.lane == lane))


@given(MARKS, st.data())
def test_swapping_neighbours_that_are_free_changes_nothing_and_others_something(marks: list[Mark], data: st.DataObject) -> None:
    if len(marks) < 2:
        return
    spot = data.draw(st.integers(0, len(marks) - 2))
    swapped = [*marks[:spot], marks[spot + 1], marks[spot], *marks[spot + 2 :]]
    before = [marks[index] for index in canonical(marks, ORDER)]
    after = [swapped[index] for index in canonical(swapped, ORDER)]
    tied = ORDER.ordered(ORDER.kind_of(marks[spot]), ORDER.kind_of(marks[spot + 1]))
    # The key's ordinals of threads come from first sight, which such a swap may exchange.
    if _sight(marks) == _sight(swapped):
        assert (before == after) is (not tied or marks[spot] == marks[spot + 1])


def test_a_long_run_is_ordered_in_about_linear_time() -> None:
    counted = 0

    class Counting(Order):
        def ordered(self, one: Mark, other: Mark) -> bool:
            nonlocal counted
            counted += 1
            return super().ordered(one, other)

    marks = [Mark("rpc<", f"rpc< n{number % 20}", "t") for number in range(5000)]
    assert canonical(marks, Counting(TABLE)) == list(range(5000))
    assert counted <= 20 * 20, "each pair of kinds is judged once"


@pytest.mark.parametrize("method", ["deprecationNotice", "project/changed"])
def test_a_notice_that_names_no_thread_has_no_fixed_place_among_several_threads(method: str) -> None:
    """Each of two requests at once gets a notice before its response, and nothing in the notice names the request."""
    table = data_tables.load("normalise", "0.169.0")
    notice = rpc("server", method=method, params={})
    opened = [rpc("client", id=1, method="thread/start"), rpc("server", id=1, result={"thread": {"id": "t"}})]
    reads = [rpc("client", id=number, method="thread/read", params={"threadId": name}) for number, name in ((2, "t"), (3, "u"))]
    answers = [rpc("server", id=number, result={"thread": {"id": name}}) for number, name in ((2, "t"), (3, "u"))]

    def order(*frames: Frame, replies_first: bool = False) -> list[str]:
        marker = Marker(table)
        marks = [marker.mark(frame) for frame in frames]
        line = canonical(marks, Order(table), replies_first=replies_first)
        return [f"{marks[index].label} {marks[index].thread or ''}".rstrip() for index in line]

    one = order(*opened, note("a"), *reads, notice, answers[0], note("b", "u"), notice, answers[1])
    assert one == order(*opened, note("a"), *reads, note("b", "u"), notice, notice, answers[1], answers[0])
    assert one != order(*opened, note("a"), *reads, note("b", "u"), notice, answers[1], answers[0])
    shown = order(*opened, note("a"), reads[0], notice, answers[0], replies_first=True)
    assert shown.index(f"rpc< {method}") > shown.index("rpc> thread/read t")


def test_the_output_of_a_process_has_no_fixed_place_in_a_turn() -> None:
    table = data_tables.load("normalise", "0.169.0")
    asked = rpc("client", id=5, method="command/exec", params={"processId": "p"})
    deltas = [{"processId": "p", "deltaBase64": text} for text in ("YQ==", "Yg==")]
    output = [rpc("server", method="command/exec/outputDelta", params=params) for params in deltas]
    usage = [note("thread/tokenUsage/updated"), rpc("server", method="account/rateLimits/updated", params={})]
    done = rpc("server", id=5, result={})

    def order(*frames: Frame) -> list[tuple[str, bytes]]:
        marker = Marker(table)
        marks = [marker.mark(frame) for frame in frames]
        return [(marks[index].thread or "", frames[index].raw) for index in canonical(marks, Order(table))]

    one = order(asked, output[0], usage[0], output[1], usage[1], done)
    assert one == order(asked, *usage, *output, done)
    assert one != order(asked, *usage, *reversed(output), done)
    assert one != order(asked, *usage, output[0], done, output[1])
