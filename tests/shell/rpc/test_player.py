"""`codex_replay.shell.rpc.player`: what it waits for, and how long, when the live server does not do what the recorded one
did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps, loads
from codex_replay.shell.rpc.client import Client, SubjectFailure
from codex_replay.shell.rpc.player import BRIEF, PATIENCE, Player

LATER = 40


class Live:
    """A client of a server that answers each request as `answers` has it, and keeps how long it was asked to wait in vain."""

    timeout = 10.0

    def __init__(self, answers: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> None:
        self.process = self
        self.status = None
        self.sent: list[Any] = []
        self.vain: list[float] = []
        self._answers = answers
        self._came: list[dict[str, Any]] = []

    def send(self, raw: bytes) -> None:
        self.sent.append(loads(raw))
        if "method" in self.sent[-1]:
            self._came += self._answers(self.sent[-1])

    def end_input(self) -> None:
        self.sent.append("the end of the input")

    def wait(self, what: str, matches: Callable[[Any], bool], timeout: float) -> Any:
        for message in self._came:
            if matches(message):
                self._came.remove(message)
                return message
        self.vain.append(timeout)
        raise SubjectFailure(f"{what} did not come within {timeout:g} s.")


def frame(n: int, sender: str, message: dict[str, Any]) -> Frame:
    return Frame(n, 0.0, "rpc", sender, raw=dumps(message) + b"\n")


def recording() -> list[Frame]:
    """A thread is opened, the server asks something, and much comes after it."""
    said: list[tuple[str, dict[str, Any]]] = [
        ("client", {"id": 1, "method": "thread/start", "params": {}}),
        ("server", {"id": 1, "result": {"thread": {"id": "th"}}}),
        ("server", {"method": "thread/started", "params": {"thread": {"id": "th"}}}),
        ("server", {"id": 0, "method": "item/tool/call", "params": {"threadId": "th"}}),
        ("client", {"id": 0, "result": {"output": "x"}}),
        ("client", {"id": 7, "result": {"output": "an answer that nobody asked for, in the recording either"}}),
        *[("server", {"method": f"more/{n}", "params": {"threadId": "th"}}) for n in range(LATER)],
    ]
    return [frame(n, sender, message) for n, (sender, message) in enumerate(said, 1)]


def play(answers: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> tuple[Live, str | None]:
    live = Live(answers)
    return live, Player(cast(Client, live), {}).play(recording())


def as_recorded(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [loads(frame.raw) for frame in recording() if frame.sender == "server"]


def refused(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"id": request["id"], "error": {"code": -32600, "message": "thread/start.x requires y"}}]


def test_a_server_that_does_as_recorded_is_waited_for_in_vain_never() -> None:
    live, failure = play(as_recorded)
    assert (failure, live.vain) == (None, [])
    assert [message.get("id") for message in live.sent] == [1, 0, 7]


def test_a_refused_thread_is_told_as_the_reason_and_nothing_is_waited_for_long() -> None:
    live, failure = play(refused)
    assert failure is not None
    assert failure.startswith("thread/start (frame 1 of the recording) was refused: thread/start.x requires y. thread/started")
    assert live.vain == [BRIEF] * PATIENCE + [0.0] * (LATER + 2 - PATIENCE)


def test_a_refusal_of_what_nothing_hangs_on_costs_no_patience() -> None:
    def answers(request: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"id": 1, "error": {"code": -32600, "message": "no"}}]

    live = Live(answers)
    frames = [
        frame(1, "client", {"id": 1, "method": "model/list", "params": {}}),
        frame(2, "server", {"id": 1, "result": {"data": []}}),
        frame(3, "server", {"method": "later", "params": {}}),
    ]
    failure = Player(cast(Client, live), {}).play(frames)
    assert live.vain == [live.timeout]
    assert failure == (
        "model/list (frame 1 of the recording) was refused: no. later (frame 3 of the recording) did not come within 10 s."
    )


def test_what_comes_again_is_waited_for_again() -> None:
    """The first frame does not come, and then every second one: patience is for frames in a row."""
    live, failure = play(
        lambda request: [m for m in as_recorded(request) if not m.get("method", "").endswith(("started", "1", "3"))]
    )
    assert failure is not None
    assert failure.startswith("thread/started (frame 3")
    assert live.vain == [live.timeout] + [BRIEF] * (len(live.vain) - 1)


def test_a_request_that_did_not_come_is_not_answered() -> None:
    live, _ = play(refused)
    assert [message.get("id") for message in live.sent] == [1, 7]


def test_a_line_without_a_line_end_is_ended_by_the_end_of_the_input() -> None:
    live = Live(lambda request: [{"id": request["id"], "result": {}}])
    frames = [frame(1, "client", {"id": 1, "method": "a"}), frame(2, "client", {"id": 2, "method": "b"})]
    frames[1].raw = frames[1].raw.rstrip(b"\n")
    frames.append(frame(3, "server", {"id": 2, "result": {}}))
    assert Player(cast(Client, live), {}).play(frames) is None
    assert live.sent == [{"id": 1, "method": "a"}, {"id": 2, "method": "b"}, "the end of the input"]


def test_the_first_piece_of_each_output_is_waited_for_and_no_further_one() -> None:
    """A client that interrupts a command after its first output is not to interrupt it before."""
    piece = {"method": "item/commandExecution/outputDelta", "params": {"itemId": "call_1", "delta": "a"}}
    other = {**piece, "params": {**piece["params"], "itemId": "call_2"}}
    live = Live(lambda request: [piece])
    frames = [frame(1, "client", {"id": 1, "method": "a"}), *(frame(n, "server", piece) for n in (2, 3))]
    assert Player(cast(Client, live), {}).play(frames) is None
    failure = Player(cast(Client, Live(lambda request: [piece])), {}).play([*frames, frame(4, "server", other)])
    assert failure is not None
    assert failure.startswith("item/commandExecution/outputDelta (frame 4 of the recording) did not come")


def test_requests_that_come_in_the_other_order_are_told_apart_by_their_calls() -> None:
    def asks(n: int, call: str) -> dict[str, Any]:
        return {"id": n, "method": "item/tool/call", "params": {"callId": call, "arguments": {}}}

    live = Live(lambda request: [asks(5, "call_1"), asks(6, "call_2")])
    frames = [
        frame(1, "client", {"id": 1, "method": "a"}),
        frame(2, "server", asks(0, "call_2")),
        frame(3, "server", asks(1, "call_1")),
    ]
    frames += [frame(4, "client", {"id": 0, "result": "two"}), frame(5, "client", {"id": 1, "result": "one"})]
    assert Player(cast(Client, live), {}).play(frames) is None
    assert live.sent[1:] == [{"id": 6, "result": "two"}, {"id": 5, "result": "one"}]


def test_a_request_for_a_call_of_another_name_is_the_recorded_one_too() -> None:
    live = Live(lambda request: [{"id": 5, "method": "item/tool/call", "params": {"callId": "other"}}])
    asked = {"id": 0, "method": "item/tool/call", "params": {"callId": "call_1"}}
    frames = [frame(1, "client", {"id": 1, "method": "a"}), frame(2, "server", asked), frame(3, "client", {"id": 0, "result": 1})]
    assert Player(cast(Client, live), {}).play(frames) is None
    assert (live.sent[1:], live.vain) == ([{"id": 5, "result": 1}], [BRIEF])


def test_the_next_page_is_asked_for_by_the_live_cursor() -> None:
    def page(n: int, day: str) -> dict[str, Any]:
        return {"id": n, "result": {"data": [], "nextCursor": f"2026-11-{day}|x", "backwardsCursor": None}}

    live = Live(lambda request: [page(request["id"], "25")])
    asked = [{"id": 1, "method": "thread/list"}, {"id": 2, "method": "thread/list", "params": {"cursor": "2026-11-20|x"}}]
    frames = [frame(1, "client", asked[0]), frame(2, "server", page(1, "20")), frame(3, "client", asked[1])]
    assert Player(cast(Client, live), {}).play(frames) is None
    assert live.sent[1]["params"] == {"cursor": "2026-11-25|x"}


def test_what_the_recorded_server_repeated_by_chance_is_waited_for_once() -> None:
    """0.169.0 sometimes says `notLoaded` twice; two other statuses that are equal are two."""

    def replayed(status: str, version: str) -> list[float]:
        changed = {"method": "thread/status/changed", "params": {"threadId": "th", "status": {"type": status}}}
        said = [
            ("client", {"id": 1, "method": "thread/archive", "params": {"threadId": "th"}}),
            ("server", {**changed, "emittedAtMs": 5}),
            ("server", {**changed, "emittedAtMs": 6}),
        ]
        live = Live(lambda _: [changed])
        Player(cast(Client, live), {}, version).play([frame(n, *each) for n, each in enumerate(said, 1)])
        return live.vain

    assert replayed("notLoaded", "0.169.0") == []
    assert replayed("idle", "0.169.0") == [10.0]
    assert replayed("notLoaded", "0.92.0") == [10.0]


def test_a_frame_of_another_thread_that_comes_first_is_not_taken_for_one_of_this_thread() -> None:
    """The live server has the recorded ids, as fake-codex has; the turns of two threads run at the same time."""
    a, b = "01a219d1-013f-71a3-997a-ced4d4ef6f40", "01a219d1-0168-7bd2-a916-8db7e9ec7e2a"

    def opened(n: int, thread: str) -> dict[str, Any]:
        return {"id": n, "result": {"thread": {"id": thread}}}

    def started(thread: str) -> dict[str, Any]:
        return {"method": "turn/started", "params": {"threadId": thread}}

    answers = {1: [opened(1, a)], 2: [opened(2, b)], 3: [started(b), started(a)]}
    live = Live(lambda request: answers.get(request["id"], []))
    frames = [
        *(frame(1, "client", {"id": 1, "method": "thread/start"}), frame(2, "server", opened(1, a))),
        *(frame(3, "client", {"id": 2, "method": "thread/start"}), frame(4, "server", opened(2, b))),
        *(frame(5, "client", {"id": 3, "method": "x"}), frame(6, "server", started(a)), frame(7, "server", started(b))),
        frame(8, "client", {"id": 4, "method": "thread/unsubscribe", "params": {"threadId": a}}),
    ]
    assert Player(cast(Client, live), {}).play(frames) is None
    assert live.sent[-1]["params"] == {"threadId": a}


def test_what_the_live_server_does_not_have_is_not_awaited() -> None:
    """Neither a notification nor a request of such a method; the recorded reply to the request is not sent."""
    absent = {"thread/started", "item/tool/call", *(f"more/{n}" for n in range(LATER))}
    live = Live(lambda message: [{"id": message["id"], "result": {"thread": {"id": "th"}}}])
    failure = Player(cast("Client", live), {}, absent=absent).play(recording())
    assert live.vain == []
    assert failure is None
    assert not any(message.get("id") == 0 for message in live.sent if isinstance(message, dict))
