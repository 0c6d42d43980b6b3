"""Replaying, judged by a model of its own: what each server frame was really caused by, in any order it may have been logged."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.normalise.normaliser import Rules
from codex_replay.core.replay.causality import Methods
from codex_replay.core.replay.match import Matcher
from codex_replay.core.replay.player import Player
from codex_replay.core.replay.track import Track
from codex_replay.core.wire.json_text import dumps, loads
from codex_replay.protocol.data_tables import load
from tests.core.replay.players import Lines, drain, live, log, player_of

# -- the model: threads, turns, approvals, written in any order that the causes allow -----------------------------------


class Model:
    """A conversation: its client frames in order, and its server frames each with the client frames that really caused it."""

    def __init__(self, plan: list[list[int]], style: str) -> None:
        self.client: list[tuple[Any, list[int]]] = []  # message, the server frames that it needs to have seen
        self.server: list[tuple[Any, list[int], Any]] = []  # message, the client frames that caused it, lane
        for number, turns in enumerate(plan):
            self._thread(number, turns, style)

    def _ask(self, message: Any, needs: list[int]) -> int:
        self.client.append((message, needs))
        return len(self.client) - 1

    def _write_out(self, message: Any, causes: list[int], lane: Any) -> int:
        self.server.append((message, causes, lane))
        return len(self.server) - 1

    def _thread(self, number: int, turns: list[int], style: str) -> None:
        thread = f"00000000-0000-7000-8000-{number:012d}"
        v2 = style == "v2"
        key = "threadId" if v2 else "conversationId"
        start = self._ask({"id": f"start{number}", "method": "thread/start" if v2 else "newConversation", "params": {}}, [])
        result = {"thread": {"id": thread}} if v2 else {"conversationId": thread}
        opened = self._write_out({"id": f"start{number}", "result": result}, [start], ("r", start))
        self._write_out(self._event(thread, "", "mcp_startup_complete"), [start], thread)
        submission = 0
        for t, approvals in enumerate(turns):
            ask = self._ask(
                {"id": f"turn{number}.{t}", "method": "turn/start" if v2 else "sendUserTurn", "params": {key: thread}}, [opened]
            )
            turn = str(submission)
            submission += 1
            result = {"turn": {"id": turn}} if v2 else {}
            self._write_out({"id": f"turn{number}.{t}", "result": result}, [ask], ("r", ask))
            causes = [ask]
            self._write_out(self._event(thread, turn, "task_started"), list(causes), thread)
            for a in range(approvals):
                server_id = number * 100 + t * 10 + a
                asked = self._write_out(
                    {"id": server_id, "method": "item/x/requestApproval", "params": {key: thread, "turnId": turn}},
                    list(causes),
                    thread,
                )
                causes.append(self._ask({"id": server_id, "result": {"decision": "accept"}}, [asked]))
                submission += 1
                self._write_out(
                    {"method": "item/completed", "params": {key: thread, "turnId": turn, "n": a}}, list(causes), thread
                )
            self._write_out({"method": "account/rateLimits/updated", "params": {}}, list(causes), thread)
            self._write_out({"method": "turn/completed", "params": {key: thread, "turn": {"id": turn}}}, list(causes), thread)

    @staticmethod
    def _event(thread: str, turn: str, name: str) -> Any:
        return {"method": f"codex/event/{name}", "params": {"id": turn, "msg": {"type": name}, "conversationId": thread}}

    def linearise(self, choose: Any) -> list[Frame]:
        """Write the conversation in one of the orders that the real pair could have: `choose(n)` picks among n."""
        asked: set[int] = set()
        said: list[int] = []
        entries: list[tuple[str, Any]] = []
        glued = {i for i, (message, _, _) in enumerate(self.server) if message.get("method", "").startswith("account/")}
        while len(asked) < len(self.client) or len(said) < len(self.server):
            can: list[tuple[str, int]] = []
            for i, (_, needs) in enumerate(self.client):
                if i not in asked:
                    if all(n in said for n in needs):
                        can.append(("client", i))
                    break  # a client sends its frames in one order: the numbers of submissions depend on it
            lanes: set[Any] = set()
            for i, (_, causes, lane) in enumerate(self.server):
                if i in said:
                    continue
                # What names no thread is written together with the frame before it.
                if lane not in lanes and all(c in asked for c in causes) and (i not in glued or said[-1:] == [i - 1]):
                    can.append(("server", i))
                lanes.add(lane)
            follow = [("server", i) for kind, i in can if kind == "server" and i in glued]
            if not can:
                return self.linearise(lambda n: 0)
            sender, i = follow[0] if follow else can[choose(len(can))]
            if sender == "client":
                asked.add(i)
                entries.append((sender, self.client[i][0]))
            else:
                said.append(i)
                entries.append((sender, self.server[i][0]))
        return log(*entries)


PLANS = st.lists(st.lists(st.integers(0, 2), max_size=3), min_size=1, max_size=3)


@settings(max_examples=150, deadline=None)
@given(PLANS, st.sampled_from(["v1", "v2"]), st.randoms(use_true_random=False))
def test_every_frame_goes_out_as_soon_as_its_causes_have_come_and_never_before(plan: Any, style: str, random: Any) -> None:
    model = Model(plan, style)
    frames = model.linearise(random.randrange)
    player = player_of(frames)
    said: list[bytes] = drain(player)
    assert said == []
    order = [frame for frame in frames if frame.sender == "client"]
    sent: set[bytes] = set()
    for frame in order:
        assert player.receive(live(frame.raw)) is None
        sent.add(frame.raw)
        said += drain(player)
        caused = [
            dumps(message) + b"\n"
            for message, causes, _ in model.server
            if all(dumps(model.client[c][0]) + b"\n" in sent for c in causes)
        ]
        assert sorted(said) == sorted(caused)
    assert [line for line in said if b"threadId" in line or b"conversationId" in line] != [] or not any(plan)
    assert player.lead.upcoming() == []


def test_the_model_would_see_a_replay_in_log_order() -> None:
    """The property above is not vacuous: letting frames out in log order stalls a client that waits."""
    model = Model([[0, 0]], "v2")
    hurried = model.linearise(lambda n: 0)  # the client's next request stands before the notifications of its first turn
    waits_in_log_order = [
        f.n for f in hurried if f.sender == "server" and any(c.n < f.n for c in hurried if c.sender == "client")
    ]
    after_second_turn = next(f.n for f in hurried if f.value.get("id") == "turn0.1" and f.sender == "client")
    first_completed = next(f.n for f in hurried if f.sender == "server" and f.value.get("method") == "turn/completed")
    assert first_completed > after_second_turn, "the hurried log does not show the race that the law is about"
    assert waits_in_log_order


# -- a version whose causality is not known --------------------------------------------------------------------------------


def in_recorded_order(*entries: tuple[str, Any]) -> Player:
    rules = Rules(load("normalise", "any"))
    return Player([Track("it", Lines(log(*entries)), Methods(None), Matcher(lambda: rules))])


def test_without_causality_each_server_frame_waits_for_every_client_frame_before_it() -> None:
    """No frame overtakes another: not the notification of another thread, and not a response whose request has come."""
    player = in_recorded_order(
        ("client", {"id": 1, "method": "a"}),
        ("client", {"id": 2, "method": "b"}),
        ("server", {"method": "of/another", "params": {"threadId": "t"}}),
        ("server", {"id": 1, "result": {}}),
        ("server", {"id": 2, "result": {}}),
        ("client", {"method": "c"}),
        ("server", {"method": "last"}),
    )
    assert drain(player) == []
    assert player.receive(live({"id": "x", "method": "a"})) is None
    assert drain(player) == []
    assert player.receive(live({"id": "y", "method": "b"})) is None
    assert [loads(raw).get("id") for raw in drain(player)] == [None, "x", "y"]
    assert player.receive(live({"method": "c"})) is None
    assert [loads(raw) for raw in drain(player)] == [{"method": "last"}]


def test_without_causality_a_reply_that_has_not_come_holds_back_what_follows() -> None:
    player = in_recorded_order(
        ("client", {"id": 1, "method": "a"}),
        ("server", {"id": 7, "method": "ask"}),
        ("client", {"id": 7, "result": {}}),
        ("client", {"id": 2, "method": "b"}),
        ("server", {"method": "after/the/reply"}),
        ("server", {"id": 2, "result": {}}),
    )
    player.receive(live({"id": 1, "method": "a"}))
    drain(player)
    player.receive(live({"id": 2, "method": "b"}))
    assert drain(player) == []
    player.receive(live({"id": 7, "result": {}}))
    assert len(drain(player)) == 2
