"""The generator changes what it says, the judge finds what a check finds, and a seeded sample of the mutants is found."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codex_replay.plugin.proxy.http import Exchange
from codex_replay.plugin.proxy.wire import WireFrame
from codex_replay.shell.rpc.client import SubjectFailure
from tests.mutants import plugin, table
from tests.mutants.judge import Judge
from tests.mutants.logged import Log, log_calls
from tests.mutants.messages import Conversations, Message, Messages, default_opaque, message_mutants, slots
from tests.mutants.operators import changes, kind, other_name, text_changes
from tests.mutants.recording import NotReplayable, Recording, answer_kind
from tests.mutants.sites import Mutant, places
from tests.support.suite_run import forked_pytest


@pytest.mark.parametrize("value", [None, True, 7, "low", [1, 2], {"a": 1}], ids=kind)
def test_each_change_changes_the_member_or_its_place(value: Any) -> None:
    names = changes(value, member=True, ordered=True)
    assert {"is missing", "has another name"} < names.keys()
    for name, change in names.items():
        parent = {"theValue": copy.deepcopy(value), "other": 1}
        change(parent, "theValue")
        assert json.dumps(parent) != json.dumps({"theValue": value, "other": 1}), name


def test_each_change_of_an_array_and_of_its_element() -> None:
    found = []
    for change in changes([1, 2], member=True, ordered=False).values():
        parent: dict[str, Any] = {"a": [1, 2]}
        change(parent, "a")
        found.append(parent.get("a"))
    assert all(wanted in found for wanted in ([2, 1], [1], [2], [1, 2, 2], [1, 2, None], [[1, 2]], None))
    assert {"is missing", "comes twice"} < changes(1, member=False, ordered=False).keys()


def test_the_places_of_one_path_are_found_without_the_others() -> None:
    value = {"a": [{"b": 1}, {"b": [2, 3], "ab": 4}], "a.b": {"c": 5}, "a[]": 6, "ab": {"metadata": {"b": 7}}, "": [8]}
    every = list(places(value))
    assert len(every) == 15
    for path in {at for at, _, _ in every}:
        assert [it for it in places(value, wanted=path) if it[0] == path] == [it for it in every if it[0] == path], path
    assert [at for at, _, _ in places(value, wanted="ab.metadata")] == ["a", "ab", "ab.metadata", ""]


@pytest.mark.parametrize(("name", "other"), [("topP", "top_p"), ("top_p", "topP"), ("model", "Model")])
def test_the_other_spelling_of_a_name(name: str, other: str) -> None:
    assert other_name(name) == other


def test_a_twin_is_replaced_and_not_overwritten() -> None:
    parent = {"topP": 1, "top_p": 1}
    changes(1, member=True, ordered=False)["has another name"](parent, "topP")
    assert parent == {"top_p": 1, "topPX": 1}


def test_each_line_word_and_blank_line_of_a_text_is_changed() -> None:
    text = "One line.\n\n- two\nThree"
    found = {name: change(text) for name, change in text_changes(text.split("\n")).items()}
    assert {name for name, changed in found.items() if changed == text} == {"the line 'Three' comes after the next"}
    assert len(found) > 35
    assert "One\n\n- two\nThree" in found.values()
    assert "One line.\n- two\nThree" in found.values()
    assert "One line.\n\ntwo\nThree" in found.values()
    assert "One line.\n\nThree\n- two" in found.values()
    assert text_changes(["Another line"])["the line 'Another line' is missing"](text) == text


# -- the judge, on a suite of two cases --------------------------------------------------------------------------------------


def frame(**value: Any) -> WireFrame:
    raw = json.dumps(value, separators=(",", ":"))
    return WireFrame(1.0, "1", "client", json.dumps(raw).encode())


CALL = {"jsonrpc": "2.0", "id": 2, "method": "newConversation", "params": {"model": "gpt", "cwd": None}}


def recording() -> Recording:
    done = Exchange("POST", "/v1/responses", None, 200, headers=[("Content-Type", "application/json")], body=b'{"text":"Hi."}')
    done.frames = [frame(**CALL)]
    return Recording([done], profile="as-specified")


def item(check: str, function: Any) -> Any:
    return SimpleNamespace(
        nodeid=check,
        name=check,
        obj=function,
        get_closest_marker=lambda name: SimpleNamespace(args=[check]),
        _fixtureinfo=SimpleNamespace(argnames=("proxy",)),
    )


def judged(*functions: Any) -> dict[str, Any]:
    items = [item(function.__name__, function) for function in functions]
    recordings = {each.nodeid: recording() for each in items}
    judge = Judge(items, recordings)
    return {mutant.id: judge.kill(mutant) for mutant in plugin.mutants(recordings)}


def asks_for_the_model(proxy: Any) -> None:
    assert proxy.ask("POST", "/v1/responses").params("newConversation")["model"] == "gpt"


def asks_for_the_text(proxy: Any) -> None:
    assert proxy.ask("POST", "/v1/responses").json["text"] == "Hi."


def test_a_check_kills_the_mutants_of_what_it_asserts() -> None:
    found = judged(asks_for_the_model, asks_for_the_text)
    wrong = found["calls: newConversation.params.model (a text) is longer"]
    assert wrong[0] == "asks_for_the_model"
    assert found["answers: POST /v1/responses whole text (any text) is missing"][0] == "asks_for_the_text"
    assert found["calls: newConversation.params.cwd (null) is a text"] == 2
    assert found["calls: newConversation has an unknown null member in params"] == 2
    assert found["calls: newConversation is omitted"][0] == "asks_for_the_model"
    assert found["answers: POST /v1/responses whole status is 200"] == 0


def test_an_answer_is_the_same_whatever_query_was_asked() -> None:
    """All cases that read such an answer judge its mutants."""
    paths = ("/v1/responses", "/v1/responses?api-version=1")
    assert len({answer_kind(Exchange("POST", path, None, 200)) for path in paths}) == 1


def test_a_case_that_is_red_on_the_recording_judges_nothing() -> None:
    def is_always_red(proxy: Any) -> None:
        raise AssertionError

    def needs_the_process(proxy: Any) -> None:
        proxy.process()

    items = [item(function.__name__, function) for function in (is_always_red, needs_the_process)]
    judge = Judge(items, {each.nodeid: recording() for each in items})
    assert judge.left_out == ["is_always_red", "needs_the_process"]


# -- the table and the figures -----------------------------------------------------------------------------------------------


def test_a_row_of_the_table_needs_a_reason() -> None:
    assert table.read("# a note\n\ncalls: a[].b * | PAY-06\n") == [table.Row("calls: a[].b *", "PAY-06")]
    with pytest.raises(ValueError, match="Add a statement or a reason"):
        table.read("calls: a |\n")
    assert table.load()


def test_the_figures_and_the_rows_that_allow_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [table.Row("calls: b *", "PAY-06"), table.Row("calls: z *", "PAY-06")]
    monkeypatch.setattr(plugin, "load", lambda: rows)
    chosen = [Mutant("calls", site, "is missing", lambda done: done, "x") for site in "abcd"]
    verdicts = {chosen[0].id: ["a-check", "a case", "why"], chosen[1].id: 3, chosen[2].id: 1, chosen[3].id: 0}
    found = plugin.result(chosen, verdicts, 4)
    assert (found["mutants"], found["killed"], found["allowed"], found["survivors"]) == (3, 1, 1, ["calls: c is missing"])
    assert (found["stale"], found["kills"]) == (["calls: z *"], {"a-check": ["calls: a is missing"]})


# -- messages: every other subject -------------------------------------------------------------------------------------------


class Letters:
    """An adapter for a subject that sends what is in a list."""

    subject: str = "letters"
    fixture: str = "letters"
    opaque: Collection[str] = default_opaque()
    words: Collection[str] = ()

    def record(self, kept: Any) -> Any:
        raise NotImplementedError

    def messages(self, one: list[Any]) -> Messages:
        return tuple(
            Message(kind, json.dumps(value), (("X-Id", "1"),), 200, at)
            for at, (kind, value) in enumerate(one, 1)
            if kind != "note"
        )

    def changed(self, one: list[Any], messages: Messages) -> list[Any]:
        return [(each.kind, each.value, dict(each.headers), each.status) for each in messages]

    def leaves_out(self, kind: str, path: str, what: str) -> bool:
        return path == "left.out"

    def stand_in(self, nodeid: str, found: list[Any]) -> Any:
        return found

    def finish(self, stand_in: Any) -> None:
        assert stand_in[0], "nothing was sent"


def verdicts_of(function: Any) -> dict[str, Any]:
    """Judge one case about letters on all mutants of two messages."""
    one = item("letters-check", function)
    one._fixtureinfo.argnames = ("letters",)
    sent = [("a", {"method": "a", "id": 1, "name": "x", "left": {"out": 1}}), ("b", {"n": [1, 2]})]
    case = Conversations(Letters(), [sent])
    judge = Judge([one], {"letters-check": case})
    assert judge.left_out == []
    return {mutant.id: judge.kill(mutant) for mutant in message_mutants(Letters(), [case])}


def test_messages_have_mutants_of_members_headers_status_and_order() -> None:
    def expects_the_name(letters: Any) -> None:
        assert [each[1]["name"] for each in letters[0] if each[0] == "a"] == ["x"]

    found = verdicts_of(expects_the_name)
    red = {name for name, verdict in found.items() if not isinstance(verdict, int)}
    assert "letters: a name (any text) is longer" in red
    assert {"letters: a is omitted", "letters: a comes twice", "letters: b n (any array) is reversed"} <= found.keys()
    assert "letters: b n (any array) is reversed" not in red
    assert found["letters: a header x-id is missing"] == found["letters: a status is 404"] == 1
    assert not any("left.out" in name for name in found)
    assert "letters: a id (any number) is one more" not in found  # the answer would have that id too
    assert "letters: a id (any number) is missing" in found


def test_what_is_moved_takes_the_places_that_there_are() -> None:
    one, two = Message("a", '"a"', place=3), Message("b", '"b"', place=7)
    assert slots((two, one)) == {3: ['"b"'], 7: ['"a"']}
    assert slots((one, one, two)) == {3: ['"a"', '"a"'], 7: ['"b"']}
    assert slots((two,)) == {7: ['"b"']}


def test_a_logged_call_is_given_once_more_in_its_order() -> None:
    class Live:
        def ask(self) -> int:
            return self.tell() + 1

        def tell(self) -> int:
            return 1

        def fail(self) -> None:
            raise SubjectFailure("no")

    live = Live()
    end = log_calls(Live, ("ask", "tell", "fail"), lambda _: 5)
    live.ask()
    with pytest.raises(SubjectFailure):
        live.fail()
    end()
    live.ask()
    log = Log(live)
    assert (log.take("ask"), log.length) == (2, 5)
    with pytest.raises(NotReplayable):
        log.take("tell")
    with pytest.raises(SubjectFailure, match="no"):
        log.take("fail")


# -- a sample ----------------------------------------------------------------------------------------------------------------

REQUESTS = "envelope environment input instructions new_conversation tools_payload user_message user_turn"
#: What is judged (subjects of which one recording of the modules serves) -> the modules whose cases judge it, the mutants, how
#: many of each subject.
PARTS: dict[str, tuple[list[str], str, int]] = {
    # What a proxy asks its app-server is the same for both endpoints, so one of them serves.
    "calls instructions": (
        ["proxy/replies/test_models.py", *(f"proxy/requests/test_{name}.py" for name in REQUESTS.split()), "-k=not responses"],
        "calls*, instructions*",
        400,
    ),
    "answers": (
        [f"proxy/replies/test_{name}.py" for name in ["auth", "chat_shape", "models", "responses_shape", "types"]],
        "answers*",
        400,
    ),
    "lite_client": (
        [f"lite_client/test_{name}.py" for name in ["auth", "follow_up", "headers", "request_body", "tools", "websocket"]],
        "lite_client: * responses*",
        200,
    ),
    "editor_client": (
        [f"editor_client/test_{name}.py" for name in ["approvals", "handshake", "interrupt", "turns"]],
        "editor_client*",
        200,
    ),
    "backend": (["backend"], "backend*", 400),
    "app_server": (["app_server/conversation/test_v2.py", "app_server/tools/test_approvals.py"], "app_server*", 400),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_sample_of_the_mutants_is_found(part: str, tmp_path: Path) -> None:
    """`make mutants` judges all; this is a sample of each subject's, judged by the modules that are about it."""
    report = tmp_path / "mutants.json"
    modules, pattern, size = PARTS[part]
    options = [f"--mutants={each}" for each in pattern.split(", ")] + [f"--mutants-sample={size}", "--mutants-jobs=1"]
    given = [name if name.startswith("-") else f"suites/{name}" for name in modules]
    done = forked_pytest([*given, "-p", "tests.mutants.plugin", *options, f"--mutants-report={report}"])
    assert done.returncode == 0, done.stdout[-3000:]
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["subjects"].keys() == set(part.split())
    assert all(count["killed"] > 0.8 * size for count in found["subjects"].values()), found["subjects"]
    assert found["killed"] + found["allowed"] == found["mutants"]
