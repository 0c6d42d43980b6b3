"""What a proxy is, as it is read off what it did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from codex_replay.cli.init.found import find_proxy
from codex_replay.plugin.proxy.detect import Answer, Observed, detect, table
from codex_replay.plugin.proxy.fields import SPECIFIED
from codex_replay.plugin.proxy.http import Exchange
from codex_replay.plugin.proxy.probe import answer_of
from codex_replay.plugin.proxy.subject import CAPABILITIES

TURN = ("thread/start", "turn/start")
SERVED = Answer(200, text="Hello.", methods=TURN)
CALLED = replace(SERVED, text="", calls=("getFileTree",), native=True)
#: A proxy that can do everything, on the calls of works-on-0.92.
ABLE: dict[str, Answer] = {
    "models": Answer(200),
    "cors": Answer(204, allowed=True),
    "chat": SERVED,
    "responses": SERVED,
    "stream": replace(SERVED, stream=True),
    "text-tools": CALLED,
    "native-tools": CALLED,
    "title-intercept": Answer(200, text="Bread"),
    "obsidian-xml": replace(SERVED, text="<tool_call>{}</tool_call>"),
}
READY = {"/readyz": 404, "/healthz": 404, "/v1/models": 200}
#: In the profile as-specified it makes the calls that the documents name.
AS_SPECIFIED = {"responses": replace(SERVED, methods=tuple(SPECIFIED))}


def seen(answers: dict[str, Answer] | None = None, **given: Any) -> Observed:
    usual: dict[str, Any] = {"ready": READY, "seconds": 0.5, "without_key": 401, "clients": {8: 8}}
    return Observed(answers={**ABLE, **(answers or {})}, **{**usual, **given})


def without(*names: str) -> list[str]:
    return [name for name in CAPABILITIES if name not in names]


DROPPED = Answer(problem="the connection closed before the end of the answer")


def test_an_endpoint_that_drops_each_connection_is_no_capability() -> None:
    found = detect(seen({"responses": DROPPED}))
    assert found.capabilities == tuple(without("responses", "obsidian-xml", "title-intercept"))
    assert found.lacks["responses"] == f"POST /v1/responses gets no answer ({DROPPED.problem})"
    assert "POST /v1/chat/completions failed, " in detect(seen({"chat": DROPPED, "responses": DROPPED})).wrong


@pytest.mark.parametrize(
    ("status", "problem", "line"),
    [
        (401, "", "needed (POST /v1/responses without a key is answered 401)"),
        (400, "", "not needed (POST /v1/responses without a key is answered 400)"),
        (0, DROPPED.problem, f"unknown: POST /v1/responses without a key got no answer ({DROPPED.problem})"),
    ],
)
def test_whether_a_key_is_needed_is_unknown_without_an_answer(
    status: int, problem: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed = seen(without_key=status, keyless="POST /v1/responses", no_answer=problem)
    monkeypatch.setattr("codex_replay.plugin.proxy.probe.observe", lambda *_: observed)
    found = find_proxy("http://127.0.0.1:9", ".", 1.0, lambda _: None)
    assert dict(found.lines)["key"] == line


def test_a_proxy_that_can_do_everything_needs_its_profile_alone() -> None:
    found = detect(seen())
    assert (found.capabilities, found.lacks, found.wrong, found.needs_key) == (CAPABILITIES, {}, "", True)
    assert table(found) == {"profile": "speaks-v2"}


@pytest.mark.parametrize(
    ("works", "specified", "profile"),
    [
        (TURN, TURN, "speaks-v2"),
        (("turn/start",), ("turn/start",), "works-on-0.92"),
        (tuple(SPECIFIED), tuple(SPECIFIED), "as-specified"),
        (TURN, tuple(SPECIFIED), "default"),
        (("newConversation", "sendUserTurn"), ("newConversation", "sendUserTurn"), "works-on-0.92"),
        ((), (), None),
    ],
)
def test_the_calls_to_the_app_server_show_the_profile(
    works: tuple[str, ...], specified: tuple[str, ...], profile: str | None
) -> None:
    answers = {name: replace(answer, methods=works if answer.methods else ()) for name, answer in ABLE.items()}
    found = detect(seen(answers, specified={"responses": replace(SERVED, methods=specified)}))
    assert found.profile == profile
    assert ("profile" in table(found)) is (profile not in (None, "default"))


@pytest.mark.parametrize(
    ("answers", "lacking", "reason"),
    [
        ({"models": Answer(404)}, ["models"], "GET /v1/models is answered 404"),
        ({"chat": Answer(404)}, ["chat"], "POST /v1/chat/completions is answered 404"),
        ({"responses": Answer(405)}, ["responses", "obsidian-xml", "title-intercept"], "POST /v1/responses is answered 405"),
        ({"stream": SERVED}, ["stream"], "not as an event stream"),
        ({"stream": Answer(400)}, ["stream"], "answered 400, not as"),
        ({"cors": Answer(204)}, ["cors"], "answered 204 without Access-Control-Allow-Origin"),
        (
            {"text-tools": SERVED},
            ["text-tools", "obsidian-xml"],
            "in its text (<tool_call>, <use_tool> or a fenced block) does not reach the client",
        ),
        ({"native-tools": SERVED}, ["native-tools"], "natively does not reach the client"),
        ({"title-intercept": SERVED}, ["title-intercept"], "a request for a title sends thread/start"),
        ({"title-intercept": Answer(500)}, ["title-intercept"], "is answered 500"),
        ({"obsidian-xml": CALLED}, ["obsidian-xml"], "does not put the calls into the text"),
    ],
)
def test_a_capability_without_a_sign_is_absent(answers: dict[str, Answer], lacking: list[str], reason: str) -> None:
    found = detect(seen(answers))
    assert sorted(found.lacks) == sorted(lacking)
    assert reason in found.lacks[lacking[0]]
    assert table(found)["capabilities"] == without(*lacking)
    assert found.wrong == ""


@pytest.mark.parametrize(
    "answers",
    [
        {"models": Answer(500)},
        {"chat": Answer(500)},
        {"chat": Answer(400, body="no")},
        {"stream": Answer(500)},
        {"stream": Answer(problem="no complete answer within 30 s")},
        {"native-tools": replace(SERVED, native=True)},
        {"title-intercept": Answer(200, text="Bread", methods=("turn/interrupt",))},
    ],
    ids=["models-500", "chat-500", "chat-400", "stream-500", "stream-hangs", "call-lost", "late-interrupt"],
)
def test_a_capability_that_is_there_and_wrong_is_for_the_suite_to_judge(answers: dict[str, Answer]) -> None:
    assert detect(seen(answers)).lacks == {}


def test_several_dialects_of_calls_are_written() -> None:
    answers = {"dialect-tool_call": CALLED, "dialect-use_tool": SERVED, "dialect-fenced": CALLED}
    assert table(detect(seen(answers)))["tool_calls"] == ["tool_call", "fenced"]
    one = detect(seen({**answers, "dialect-fenced": SERVED}))
    assert (one.dialects, "tool_calls" in table(one)) == (("tool_call",), False)


@pytest.mark.parametrize("dialect", ["use_tool", "fenced"])
def test_a_proxy_of_another_dialect_alone_finds_calls_in_a_text(dialect: str) -> None:
    answers = {"text-tools": SERVED, "dialect-tool_call": SERVED, "dialect-use_tool": SERVED, "dialect-fenced": SERVED}
    found = detect(seen({**answers, f"dialect-{dialect}": CALLED}))
    # What it does with the markup of another dialect is no sign of the mode in which calls are put back into the text.
    assert list(found.lacks) == ["obsidian-xml"]
    assert table(found)["tool_calls"] == [dialect]


def test_text_tools_of_the_other_profile_count() -> None:
    found = detect(seen({"text-tools": SERVED}, specified={**AS_SPECIFIED, "text-tools": CALLED}))
    assert found.lacks == {}


@pytest.mark.parametrize(
    ("ready", "path"),
    [
        ({"/readyz": 200, "/healthz": 200, "/v1/models": 200}, "/readyz"),
        ({"/readyz": 404, "/healthz": 204, "/v1/models": 200}, "/healthz"),
        ({"/readyz": 503, "/healthz": 0, "/v1/models": 401}, "/v1/models"),
    ],
)
def test_the_path_that_tells_best_when_it_is_ready(ready: dict[str, int], path: str) -> None:
    found = detect(seen(ready=ready))
    assert found.ready == path
    assert table(found).get("ready", "/v1/models") == path


@pytest.mark.parametrize(("seconds", "limit"), [(0.1, None), (5.0, None), (6.0, 24.0), (25.0, 100.0)])
def test_a_slow_start_gets_four_times_its_time(seconds: float, limit: float | None) -> None:
    assert table(detect(seen(seconds=seconds))).get("ready_seconds") == limit


@pytest.mark.parametrize(
    ("clients", "number", "written"),
    [({8: 8}, 8, None), ({8: 5, 4: 4}, 4, 4), ({8: 1, 4: 1, 2: 1, 1: 1}, 1, 1), ({}, None, None)],
)
def test_as_many_clients_as_were_all_served(clients: dict[int, int], number: int | None, written: int | None) -> None:
    found = detect(seen(clients=clients))
    assert found.clients == number
    assert table(found).get("clients") == written


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        (
            {"chat": Answer(404, body="not found"), "responses": Answer(404)},
            "The proxy has none of the routes that a client uses: POST /v1/chat/completions is answered 404: not found, ",
        ),
        ({"chat": Answer(401), "responses": Answer(401)}, "The proxy refuses the key of the suite (401)."),
        (
            {"chat": Answer(500), "responses": Answer(500)},
            "The proxy serves no request: POST /v1/chat/completions is answered 50",
        ),
        (
            {"chat": Answer(problem="no complete answer within 30 s"), "responses": Answer(404)},
            "The proxy serves no request: POST /v1/chat/completions failed, no complete answer within 30 s.",
        ),
        (
            {name: replace(answer, methods=()) for name, answer in ABLE.items()},
            "The proxy sends nothing to its app-server. A proxy must start the codex that CODEX_BIN names",
        ),
    ],
    ids=["no-route", "key", "500", "hangs", "no-codex"],
)
def test_a_proxy_that_cannot_be_judged_is_said_to_be_so(answers: dict[str, Answer], sentence: str) -> None:
    assert detect(seen(answers)).wrong.startswith(sentence)


def test_a_proxy_that_serves_nothing_is_quoted() -> None:
    nothing = {"chat": Answer(problem="the connection failed"), "responses": Answer(404)}
    wrong = detect(Observed(answers=nothing, stderr="No such file: 'codex'")).wrong
    assert "`$CODEX_BIN app-server`. init tries Codex " in wrong
    assert wrong.endswith("(docs/proxy.md, \"A later Codex\"). Its stderr ends: No such file: 'codex'")
    served = {**nothing, "chat": Answer(500, methods=("thread/start",))}
    wrong = detect(seen(served)).wrong
    assert "CODEX_BIN" not in wrong
    assert wrong.endswith(" The proxy has sent its app-server: thread/start.")


def test_of_a_proxy_that_was_only_attached_to_nothing_is_assumed() -> None:
    answers = {"chat": Answer(200), "responses": Answer(404), "models": Answer(200), "cors": Answer(204, allowed=True)}
    found = detect(Observed(True, READY, 0.1, 200, answers))
    assert (found.profile, found.clients, found.wrong, found.needs_key) == ("works-on-0.92", None, "", False)
    assert sorted(found.lacks) == ["obsidian-xml", "responses", "title-intercept"]


@pytest.mark.parametrize(
    ("body", "text", "calls"),
    [
        (b'{"choices": [{"message": {"content": "Hi"}}]}', "Hi", ()),
        (b'{"choices": [{"message": {"content": null, "tool_calls": [{"function": {"name": "a"}}]}}]}', "", ("a",)),
        (b'{"output": [{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}]}', "Hi", ()),
        (b'{"output": [{"type": "function_call", "name": "a"}]}', "", ("a",)),
        (b'{"choices": 3}', "", ()),
        (b'[{"choices": []}]', "", ()),
        (b"no json", "", ()),
        (b'{"choices": [{}]}', "", ()),
    ],
)
def test_an_answer_is_read_whatever_it_is(body: bytes, text: str, calls: tuple[str, ...]) -> None:
    found = answer_of(Exchange("POST", "/v1/x", None, 200, body=body))
    assert (found.status, found.text, found.calls, found.methods) == (200, text, calls, ())
