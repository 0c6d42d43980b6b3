"""What two versions do otherwise, told from their frames: each kind of change is planted, and it and nothing else is found."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.behaviour import case as behaviour_case
from codex_replay.protocol.behaviour import findings
from codex_replay.protocol.behaviour.case import RULES, Kept
from codex_replay.protocol.behaviour.findings import doubtful, outcome
from codex_replay.protocol.behaviour.markdown import markdown, summary, to_json
from codex_replay.protocol.behaviour.run_form import form
from codex_replay.protocol.behaviour.values import ABSENT, Names, differences

THREAD = "01890000-0000-7000-8000-000000000001"
OTHER = "01890000-0000-7000-8000-000000000002"
ITEM = "01890000-0000-7000-8000-00000000000a"
V = ("0.92.0", "0.116.0")

Talk = list[tuple[str, Any]]
Found = set[tuple[str, str, str]]


def talk() -> Talk:
    """A conversation as ">" and "<" messages and "^" requests to the model: two tools are called, one by the client's leave."""
    said = {"type": "function_call_output", "call_id": "call_1", "output": "12:00"}
    ask = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]}
    return [
        (">", {"id": 0, "method": "initialize", "params": {}}),
        ("<", {"id": 0, "result": {"userAgent": "a/0.92.0 (b; c) d"}}),
        (">", {"id": 1, "method": "thread/start", "params": {}}),
        ("<", {"id": 1, "result": {"thread": {"id": THREAD, "preview": "x"}, "model": "m"}}),
        ("<", {"method": "thread/started", "params": {"thread": {"id": THREAD}}}),
        ("<", {"method": "codex/event/one", "params": {"conversationId": THREAD, "msg": {"a": 1}}}),
        ("<", {"method": "codex/event/two", "params": {"conversationId": THREAD, "msg": {"b": 1}}}),
        ("<", {"method": "codex/event/three", "params": {"conversationId": THREAD, "msg": {"c": 1}}}),
        (">", {"id": 2, "method": "turn/start", "params": {"threadId": THREAD}}),
        ("<", {"id": 2, "result": {"turn": {"id": "0", "status": "inProgress"}}}),
        ("^", {"body": {"input": [ask], "instructions": "Be good.", "tools": []}}),
        ("<", {"method": "item/started", "params": {"threadId": THREAD, "item": {"type": "userMessage", "id": ITEM}}}),
        ("<", {"method": "item/completed", "params": {"threadId": THREAD, "item": {"type": "userMessage", "id": ITEM}}}),
        ("<", {"id": 0, "method": "item/tool/call", "params": {"threadId": THREAD, "callId": "call_1", "tool": "clock"}}),
        (">", {"id": 0, "result": {"output": "12:00", "success": True}}),
        ("^", {"body": {"input": [ask, said], "instructions": "Be good.", "tools": []}}),
        ("<", {"method": "item/agentMessage/delta", "params": {"threadId": THREAD, "itemId": "m", "delta": "Done"}}),
        (">", {"id": 3, "method": "bogus", "params": {}}),
        ("<", {"id": 3, "error": {"code": -32600, "message": "unknown variant `bogus`"}}),
        (">", {"id": 4, "method": "account/read", "params": {}}),
        ("<", {"id": 4, "result": {"account": None}}),
        ("<", {"method": "turn/completed", "params": {"threadId": THREAD, "turn": {"id": "0", "status": "completed"}}}),
    ]


def frames(said: Talk) -> list[Frame]:
    """The talk as frames, a hundredth of a second apart."""
    found = []
    thread = next((value["result"]["thread"]["id"] for _, value in said if "thread" in (value.get("result") or {})), "")
    for n, (way, value) in enumerate(said, 1):
        if way == "^":
            payload = {"method": "POST", "path": "/v1/responses", "headers": [["session_id", thread]], **value}
            found.append(Frame(n, n / 100, "http", "client", "request", b"", copy.deepcopy(payload), n))
        else:
            sender = "client" if way == ">" else "server"
            found.append(Frame(n, n / 100, "rpc", sender, "msg", dumps(value) + b"\n"))
    return found


def kept(said: Talk, case: str = "app_server/test_x/a", *, closed: bool = True, **how: Any) -> Kept:
    """A case as a run left it."""
    end = (len(said) + 1) / 100 if closed else None
    return Kept(case, how.pop("outcome", "passed"), servers=(form(frames(said), V[0], end),), **how)


def runs(*cases: Kept) -> dict[str, Kept]:
    return {each.case: each for each in cases}


def compared(after: Talk, **how: Any) -> dict[str, Any]:
    """What is found between the talk and another one, each in one case."""
    return outcome(runs(kept(talk())), runs(kept(talk())), runs(kept(after, **how)), V)


def told(found: dict[str, Any]) -> Found:
    return {(each["rule"], each["method"], each["path"]) for each in [*found["findings"], *found["single"]]}


def index(said: Talk, method: str) -> int:
    return next(at for at, (way, value) in enumerate(said) if way == "<" and value.get("method") == method)


def reply(said: Talk, number: int) -> int:
    return next(at for at, (way, value) in enumerate(said) if way == "<" and value.get("id") == number and "method" not in value)


def drop(method: str) -> Callable[[Talk], None]:
    def plant(said: Talk) -> None:
        del said[index(said, method)]

    return plant


def twice(method: str) -> Callable[[Talk], None]:
    def plant(said: Talk) -> None:
        at = index(said, method)
        said.insert(at, copy.deepcopy(said[at]))

    return plant


def swapped(said: Talk) -> None:
    at = index(said, "item/started")
    said[at], said[at + 1] = said[at + 1], said[at]


def in_order(said: Talk) -> None:
    at = index(said, "item/agentMessage/delta")
    said.insert(at, ("<", {"method": "item/agentMessage/delta", "params": {"threadId": THREAD, "itemId": "m", "delta": "Not "}}))


def put(method: str, value: Any, *path: str) -> Callable[[Talk], None]:
    def plant(said: Talk) -> None:
        inner = said[index(said, method)][1]
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value

    return plant


def answer(number: int, **reply_: Any) -> Callable[[Talk], None]:
    def plant(said: Talk) -> None:
        said[reply(said, number)] = ("<", {"id": number, **reply_})

    return plant


def unheard(said: Talk) -> None:
    asked = [value for way, value in said if way == "^"][1]
    asked["body"]["input"][1]["output"] = "dynamic tool response was invalid"


def instructions(said: Talk) -> None:
    for way, value in said:
        if way == "^":
            value["body"]["instructions"] = "Be better."


def in_front(said: Talk) -> None:
    item = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "New."}]}
    for way, value in said:
        if way == "^":
            value["body"]["input"] = [copy.deepcopy(item), *value["body"]["input"]]


def family(said: Talk) -> None:
    said[:] = [(way, value) for way, value in said if not str(value.get("method")).startswith("codex/event/")]


def added(said: Talk) -> None:
    said.append(("<", {"method": "configWarning", "params": {"threadId": THREAD, "summary": "Careful."}}))


#: name -> (what is planted, the findings that it must make: rule, method, path)
PLANTS: dict[str, tuple[Callable[[Talk], None], Found]] = {
    "vanished": (drop("codex/event/two"), {("vanished", "codex/event/two", "")}),
    "family": (family, {("vanished", "codex/event/*", "")}),
    "doubled": (twice("codex/event/two"), {("doubled", "codex/event/two", "")}),
    "oftener": (in_order, {("oftener", "item/agentMessage/delta", "")}),
    "order": (swapped, {("order", "item/started userMessage, item/completed userMessage", "")}),
    "appeared": (added, {("appeared", "configWarning", "")}),
    "value": (put("codex/event/one", 2, "params", "msg", "a"), {("value", "codex/event/one", "$.params.msg.a")}),
    "type": (put("codex/event/one", "1", "params", "msg", "a"), {("value", "codex/event/one", "$.params.msg.a")}),
    "null": (put("codex/event/one", None, "params", "msg", "a"), {("value", "codex/event/one", "$.params.msg.a")}),
    "new": (put("thread/started", None, "params", "thread", "name"), {("new", "thread/started", "$.params.thread.name")}),
    "identity": (
        put("item/completed", OTHER, "params", "item", "id"),
        {("identity", "item/completed userMessage", "$.params.item.id")},
    ),
    "error text": (
        answer(3, error={"code": -32600, "message": "no method `bogus`"}),
        {("error text", "reply to bogus", "$.error.message")},
    ),
    "error code": (
        answer(3, error={"code": -32601, "message": "unknown variant `bogus`"}),
        {("value", "reply to bogus", "$.error.code")},
    ),
    "refused": (answer(4, error={"code": -32600, "message": "No."}), {("refused", "reply to account/read", "$")}),
    "accepted": (answer(3, result={}), {("accepted", "reply to bogus", "$")}),
    "gone": (answer(4, result={}), {("gone", "reply to account/read", "$.result.account")}),
    "unheard": (unheard, {("unheard", "item/tool/call", "upstream body.input[function_call_output].output")}),
    "upstream": (instructions, {("value", "upstream POST /v1/responses", "$.body.instructions")}),
    "upstream list": (in_front, {("new", "upstream POST /v1/responses", "$.body.input[message developer]")}),
}


def finds_exactly(name: str) -> bool:
    plant, expected = PLANTS[name]
    after = talk()
    plant(after)
    return told(compared(after)) == expected


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_change_is_found_and_nothing_else(name: str) -> None:
    plant, expected = PLANTS[name]
    after = talk()
    plant(after)
    found = compared(after)
    assert told(found) == expected
    assert found["totals"]["changed"] == 1
    assert {rule for rule, _, _ in expected} <= set(RULES)


def test_rarer_is_found_the_other_way_round() -> None:
    more = talk()
    in_order(more)
    found = outcome(runs(kept(more)), runs(kept(more)), runs(kept(talk())), V)
    assert told(found) == {("rarer", "item/agentMessage/delta", "")}


def test_every_rule_is_planted() -> None:
    planted = {rule for _, expected in PLANTS.values() for rule, _, _ in expected}
    assert set(RULES) - planted == {"rarer", "assertion"}  # which have tests of their own


#: what is left out -> (where, what stands in its place, the plants that are then no longer found)
LEFT_OUT: dict[str, tuple[Any, str, Callable[..., Any], set[str]]] = {
    "order": (behaviour_case, "_order", lambda *of: (), {"order"}),
    "unpaired": (behaviour_case, "_unpaired", lambda *of: (), {"vanished", "family", "doubled", "oftener", "appeared"}),
    "heard": (behaviour_case, "_heard", lambda *of: (), {"unheard"}),
    "families": (findings, "_families", lambda found, *of: found, {"family"}),
    "inside": (
        behaviour_case,
        "_inside",
        lambda *of: (),
        set(PLANTS) - {"order", "vanished", "family", "doubled", "oftener", "appeared", "unheard"},
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_comparison_that_is_left_out_is_missed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted changes would tell: without one of the comparisons just its own plants are no longer found."""
    module, attribute, instead, missed = LEFT_OUT[name]
    monkeypatch.setattr(module, attribute, instead)
    assert {plant for plant in PLANTS if not finds_exactly(plant)} == missed


# ------------------------------------------------------------------ what is no change


def test_a_run_against_itself_has_changed_nothing() -> None:
    found = compared(talk())
    assert told(found) == set()
    assert found["totals"] | {"noise": 0, "unchanged": 1, "findings": 0} == found["totals"]


def test_other_ids_are_no_change() -> None:
    after = json.loads(json.dumps(talk()).replace(THREAD, OTHER).replace(ITEM, THREAD))
    assert told(compared([tuple(each) for each in after])) == set()


def test_a_declared_race_is_no_change() -> None:
    """thread/started may come after what the thread's own task says (normalise.json)."""
    before, after = talk(), talk()
    for said in (before, after):
        said.insert(5, ("<", {"method": "codex/event/task_started", "params": {"conversationId": THREAD, "msg": {}}}))
    after[4], after[5] = after[5], after[4]
    assert told(outcome(runs(kept(before)), runs(kept(before)), runs(kept(after)), V)) == set()


def test_output_cut_elsewhere_is_no_change() -> None:
    before, after = talk(), talk()

    def piece(text: str) -> tuple[str, Any]:
        params = {"threadId": THREAD, "itemId": "c", "delta": text}
        return ("<", {"method": "item/commandExecution/outputDelta", "params": params})

    before[16:16] = [piece("one "), piece("two")]
    after[16:16] = [piece("one t"), piece("w"), piece("o")]
    assert told(outcome(runs(kept(before)), runs(kept(before)), runs(kept(after)), V)) == set()


def test_what_two_runs_of_one_version_differ_in_is_noise() -> None:
    control, after = talk(), talk()
    put("codex/event/one", 7, "params", "msg", "a")(control)
    put("codex/event/one", 8, "params", "msg", "a")(after)
    put("codex/event/two", 8, "params", "msg", "b")(after)
    found = outcome(runs(kept(talk())), runs(kept(control)), runs(kept(after)), V)
    assert told(found) == {("value", "codex/event/two", "$.params.msg.b")}
    assert found["noise"] == [{"rule": "value", "method": "codex/event/one", "path": "$.params.msg.a", "cases": 1}]


def test_an_order_that_is_noise_in_one_case_is_noise_in_all() -> None:
    after = talk()
    swapped(after)
    one, two = "app_server/test_x/a", "app_server/test_x/b"
    before = runs(kept(talk(), one), kept(talk(), two))
    control = runs(kept(after, one), kept(talk(), two))
    assert told(outcome(before, control, runs(kept(talk(), one), kept(after, two)), V)) == set()
    assert told(outcome(before, before, runs(kept(talk(), one), kept(after, two)), V)) != set()


def test_what_a_second_run_does_not_confirm_is_noise() -> None:
    after = talk()
    put("codex/event/one", 8, "params", "msg", "a")(after)
    base, changed = runs(kept(talk())), runs(kept(after))
    found = outcome(base, base, changed, V)
    assert doubtful(found) == ["app_server/test_x/a"]
    assert told(outcome(base, base, changed, V, again=changed)) == told(found) != set()
    again = outcome(base, base, changed, V, again=base)
    assert told(again) == set()
    assert again["totals"]["noise"] == 1


def test_what_only_a_racy_case_shows_stands_apart() -> None:
    """There the server has more than one right way, as the case says: no change is claimed, and nothing is hidden."""
    after = talk()
    put("codex/event/one", 8, "params", "msg", "a")(after)
    base = runs(kept(talk(), racy="either call may come first"))
    found = outcome(base, base, runs(kept(after)), V)
    assert told(found) == set()
    assert [(each["rule"], each["path"]) for each in found["racy"]] == [("value", "$.params.msg.a")]
    assert doubtful(found) == ["app_server/test_x/a"]
    assert "Seen only where the server has more than one correct behaviour" in markdown(found)
    one, two = "app_server/test_x/a", "app_server/test_x/b"
    base = runs(kept(talk(), one, racy="either"), kept(talk(), two))
    assert told(outcome(base, base, runs(kept(after, one), kept(after, two)), V)) == {
        ("value", "codex/event/one", "$.params.msg.a")
    }


# ------------------------------------------------------------------ what cannot be compared


def not_compared(before: dict[str, Kept], control: dict[str, Kept], after: dict[str, Kept]) -> list[str]:
    found = outcome(before, control, after, V)
    assert found["totals"]["compared"] == found["totals"]["unchanged"] == found["totals"]["noise"] == 0
    return [each["why"] for each in found["not_compared"]]


def test_a_case_that_a_run_has_not_left_is_not_compared() -> None:
    case = kept(talk())
    skipped = kept(talk(), outcome="skipped", sentence="live only")
    lost = Kept(case.case, "lost", sentence="The http seam could not be kept.")
    silent = kept([])
    early = kept(talk()[:8], outcome="failed", early=True, sentence="test_x.py, line 3: assert 1 == 2", closed=False)
    assert not_compared(runs(case), runs(case), {}) == ["0.116.0 has no recording of this case"]
    assert not_compared(runs(case), {}, runs(case)) == ["0.92.0 (control) has no recording of this case"]
    assert not_compared(runs(case), runs(skipped), runs(case)) == ["skipped on 0.92.0 (control): live only"]
    assert not_compared(runs(case), runs(case), runs(lost)) == ["lost on 0.116.0: The http seam could not be kept."]
    assert not_compared(runs(silent), runs(case), runs(case)) == ["the server of 0.92.0 sent no message"]
    (why,) = not_compared(runs(case), runs(early), runs(case))
    assert why.startswith("the two runs of 0.92.0 ended differently: test_x.py, line 3: assert 1 == 2 after ")


def test_a_case_that_ends_early_is_compared_up_to_there() -> None:
    """What is planted before the end is found; what comes after it in the other run is no difference."""
    after = talk()[:14]
    put("codex/event/one", 2, "params", "msg", "a")(after)
    drop("codex/event/two")(after)
    found = compared(after, outcome="failed", early=True, sentence="test_x.py, line 7: assert 1 == 2", closed=False)
    assert told(found) == {("value", "codex/event/one", "$.params.msg.a"), ("vanished", "codex/event/two", "")}
    ends = "test_x.py, line 7: assert 1 == 2 after item/tool/call"
    assert found["ended_early"] == [{"case": "app_server/test_x/a", "version": "0.116.0", "ends_early_at": ends}]


def test_the_first_version_may_end_early_too() -> None:
    early = kept(talk()[:14], outcome="failed", early=True, sentence="x", closed=False)
    found = outcome(runs(early), runs(early), runs(kept(talk())), V)
    assert told(found) == set()
    assert found["ended_early"][0]["version"] == "0.92.0"


def test_what_came_after_the_end_of_input_is_held_against_no_run_that_kept_its_input_open() -> None:
    """The client did not get to close its stdin there, so that what a server says at its end cannot be missed."""
    said = talk()
    last = [*said, ("<", {"method": "codex/event/shutdown", "params": {"conversationId": THREAD}})]
    one = Kept("app_server/test_x/a", "passed", servers=(form(frames(last), V[0], (len(last) - 0.5) / 100),))
    early = kept(said, outcome="failed", early=True, sentence="x", closed=False)
    ended = kept(said)
    assert ("vanished", "codex/event/shutdown", "") not in told(outcome(runs(one), runs(one), runs(early), V))
    assert told(outcome(runs(one), runs(one), runs(ended), V)) == {("vanished", "codex/event/shutdown", "")}


def test_a_case_that_fails_although_no_frame_has_changed_is_told() -> None:
    found = compared(talk(), outcome="failed", sentence="test_x.py: it did not end of itself")
    assert told(found) == {("assertion", "the case itself", "")}
    assert found["single"][0]["examples"][0]["after"] == '"test_x.py: it did not end of itself"'


# ------------------------------------------------------------------ gathering and telling


def test_findings_are_gathered_over_cases_and_the_most_telling_come_first() -> None:
    names = [f"app_server/test_x/{letter}" for letter in "abc"]
    one, two = talk(), talk()
    put("codex/event/one", 2, "params", "msg", "a")(one)
    put("codex/event/one", 3, "params", "msg", "a")(two)
    unheard(two)
    base = runs(*(kept(talk(), name) for name in names))
    found = outcome(base, base, runs(kept(one, names[0]), kept(two, names[1]), kept(one, names[2])), V)
    (finding,) = found["findings"]
    assert (finding["rule"], finding["method"], finding["path"]) == ("value", "codex/event/one", "$.params.msg.a")
    assert (finding["count"], finding["cases"], finding["variants"]) == (3, [0, 1, 2], 2)
    assert finding["examples"] == [
        {"before": "1", "after": "2", "case": names[0]},
        {"before": "1", "after": "3", "case": names[1]},
    ]
    assert [each["rule"] for each in found["single"]] == ["unheard"]
    assert found["single"][0]["note"] == "the client replies {output, success}"
    assert doubtful(found) == [names[1]]


def test_one_member_that_changes_alike_in_several_methods_is_one_finding() -> None:
    after = talk()
    for method in ("codex/event/one", "codex/event/two", "codex/event/three"):
        put(method, None, "params", "msg", "more")(after)
    found = compared(after)
    assert told(found) == {("new", "3 methods", "$..more")}
    assert found["single"][0]["methods"] == ["codex/event/one", "codex/event/three", "codex/event/two"]


def test_a_part_of_a_family_is_not_the_family() -> None:
    after = talk()
    for method in ("codex/event/one", "codex/event/two"):
        drop(method)(after)
    assert told(compared(after)) == {("vanished", "codex/event/one", ""), ("vanished", "codex/event/two", "")}


def test_of_long_texts_the_place_of_the_difference_is_shown() -> None:
    before, after = talk(), talk()
    for said, word in ((before, "old"), (after, "new")):
        put("codex/event/one", "x" * 5000 + word + "y" * 5000, "params", "msg", "a")(said)
    found = outcome(runs(kept(before)), runs(kept(before)), runs(kept(after)), V)
    example = found["single"][0]["examples"][0]
    assert "old" in example["before"]
    assert "new" in example["after"]
    assert max(len(example["before"]), len(example["after"])) < 300


def test_markdown_tells_every_finding_in_a_row_of_its_table() -> None:
    after = talk()
    unheard(after)
    put("codex/event/one", "a | b `c` <d>\n", "params", "msg", "a")(after)
    found = compared(after)
    text = markdown(found)
    rows = [line for line in text.splitlines() if line.startswith("| **")]
    assert len(rows) == len(found["findings"]) + len(found["single"]) == 2
    assert all(line.replace("\\|", "").count("|") == 8 for line in rows)
    assert "the client replies {output, success}" in rows[0]
    assert json.loads(to_json(found)) == found


def test_a_comparison_of_some_cases_names_the_expression_that_chose_them() -> None:
    one = kept(talk())
    some, every = (outcome(runs(one), runs(one), runs(one), V, chosen=chosen) for chosen in ("test_x and not (b or c[1])", ""))
    assert json.loads(to_json(some))["chosen"] == "test_x and not (b or c[1])"
    assert {key: value for key, value in some.items() if key != "chosen"} == every
    assert summary(some).startswith("Only the cases of -k 'test_x and not (b or c[1])' were run. 1 of 1 cases compared")
    text = markdown(some)
    assert "`codex-replay drift --behaviour 0.92.0 0.116.0 -k 'test_x and not (b or c[1])' --markdown FILE`" in text
    assert "the cases of the app-server suite that match the expression, run" in text
    assert "-k" not in markdown(every)


@pytest.mark.parametrize(
    ("before", "after", "differ"),
    [
        (["a"], ["a"], []),
        (["a", "b"], ["a", "c"], [("b", "c")]),
        (["a", "b"], ["b", "a"], [("a", "b"), ("b", "a")]),
        (["a", "b"], ["a"], [("b", ABSENT)]),
        (["a"], ["a", "b"], [(ABSENT, "b")]),
        ([], ["a"], [(ABSENT, "a")]),
    ],
)
def test_a_header_that_is_repeated_is_compared_each_time(before: list[str], after: list[str], differ: list[Any]) -> None:
    """Order counts among the values of one name, and not between names; the case of a name never does."""
    one = [["X-Several", value] for value in before] + [["accept", "x"]]
    other = [["accept", "x"]] + [["x-several", value] for value in after]
    found = list(differences(one, other, Names()))
    assert [(at.path, at.before, at.after) for at in found] == [("$[x-several]", *pair) for pair in differ]
