"""The reference proxy in front of the real Codex 0.92 with the fake backend: what a client gets, and what the model is sent."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.http.backend_process import BackendProcess, BackendSession
from tests.real.sdks.client_venv import python_with
from tests.reference.proxy_driver import Proxy, plan, running

TOOL = {
    "name": "add",
    "description": "Adds two numbers.",
    "parameters": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
}
NESTED, FLAT = {"type": "function", "function": TOOL}, {"type": "function", **TOOL}
Start = Callable[..., tuple[Proxy, BackendSession]]


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


@pytest.fixture
def start(backend: BackendProcess, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Start]:
    """Start a proxy whose model says what the script says."""
    binary = find_installed("0.92.0")
    assert binary is not None, "Codex 0.92.0 is missing: run `codex-replay codex install 0.92.0` first"
    with ExitStack() as stack:

        def begin(script: object, profile: str = "works-on-0.92", **env: str) -> tuple[Proxy, BackendSession]:
            session = backend.session(request.node.name, script)
            stack.callback(session.close)
            home = HermeticHome(tmp_path, session.url)
            given = {**home.env, "CODEX_BIN": str(binary), "PROXY_PROFILE": profile, "PROXY_CODEX_WORKDIR": str(home.work)}
            proxy = Proxy({**given, "PROXY_IDLE_TIMEOUT_MS": "15000", **env})
            stack.callback(proxy.close)
            return proxy, session

        yield begin


def posts(session: BackendSession) -> list[dict[str, Any]]:
    assert session.problems() == []
    return [entry for entry in session.ledger() if entry["method"] == "POST"]


def user(text: str = "hi") -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def test_one_model_call_a_request(start: Start) -> None:
    proxy, session = start(["One.", "Two.", "Three."])
    assert proxy.chat({**user(), "model": "gpt-5.2-codev-l"}).json["choices"][0]["message"]["content"] == "One."
    assert proxy.responses({"input": "hi"}).json["output"][0]["content"][0]["text"] == "Two."
    events = proxy.responses({"input": "hi", "stream": True}).events
    assert events[-1]["response"]["usage"]["total_tokens"] > 0
    sent = posts(session)
    assert len(sent) == 3
    assert sent[0]["body"]["model"] == "gpt-5.2"
    assert sent[0]["body"]["reasoning"]["effort"] == "low"


def test_tools_instructions_and_the_schema_reach_the_model(start: Start) -> None:
    proxy, session = start(["{}"])
    shape = {"type": "json_schema", "name": "x", "schema": {"type": "object", "properties": {}, "additionalProperties": False}}
    proxy.responses({"input": "hi", "instructions": "be brief", "tools": [FLAT], "text": {"format": shape}})
    body = posts(session)[0]["body"]
    assert [tool["name"] for tool in body["tools"] if tool.get("name") == "add"] == ["add"]
    assert body["text"]["format"]["schema"] == shape["schema"]
    developer = [item for item in body["input"] if item.get("role") == "developer"]
    assert any("be brief" in part["text"] for item in developer for part in item["content"])


def test_native_calls_cost_one_model_call_and_the_next_request_works(start: Start) -> None:
    calls = [{"type": "function_call", "name": "add", "arguments": {"a": number}} for number in (1, 2)]
    proxy, session = start([{"items": ["Let me.", *calls]}, "3"])
    choice = proxy.chat({**user(), "tools": [NESTED]}).json["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", "Let me.")
    made = choice["message"]["tool_calls"]
    assert [json.loads(call["function"]["arguments"]) for call in made] == [{"a": 1}, {"a": 2}]
    outputs = [{"role": "tool", "tool_call_id": call["id"], "content": "3"} for call in made]
    again = {"messages": [*user()["messages"], choice["message"], *outputs], "tools": [NESTED]}
    assert proxy.chat(again).json["choices"][0]["message"]["content"] == "3"
    sent = posts(session)
    assert len(sent) == 2
    text = json.dumps(sent[1]["body"]["input"])
    assert "[function_call name=add" in text
    assert "[tool_output call_id=" in text


def test_calls_in_the_text_where_the_model_has_no_tools(start: Start) -> None:
    said = 'Well: <tool_call>{"name":"add","arguments":"{\\"a\\":1}"}</tool_call>'
    proxy, session = start([{"items": [said], "delta": 3}], PROXY_RESPONSES_OMIT_TOOL_MANIFEST="true")
    output = proxy.responses({"input": "hi", "tools": [FLAT]}).json["output"]
    assert [(item["type"], item.get("arguments")) for item in output] == [("message", None), ("function_call", '{"a":1}')]
    body = posts(session)[0]["body"]
    assert "add" not in [tool.get("name") for tool in body["tools"]]
    assert "Tool calling instructions:" in json.dumps(body["input"])


FAULTS: dict[str, tuple[Any, int, str]] = {
    "context length": ({"items": [], "fault": "failed_context_length_exceeded"}, 400, "context_length_exceeded"),
    "quota": ({"items": [], "fault": "failed_insufficient_quota"}, 429, "insufficient_quota"),
    "429": ({"items": [], "fault": "http_429"}, 429, "rate_limit_exceeded"),
    "incomplete": ({"items": [{"type": "incomplete"}]}, 502, "upstream_error"),
    "cut": ({"items": ["half an answer"], "fault": "cut"}, 502, "upstream_error"),
    "reset": ({"items": [], "fault": "reset"}, 502, "upstream_error"),
    "500": ({"items": [], "fault": "http_500"}, 502, "upstream_error"),
    "503": ({"items": [], "fault": "http_503"}, 503, "upstream_unavailable"),
    "400": ({"items": [], "fault": "http_400"}, 400, "bad_request"),
    "403": ({"items": [], "fault": "http_403"}, 502, "upstream_error"),
}


@pytest.mark.parametrize("profile", ["works-on-0.92", "as-specified"])
@pytest.mark.parametrize("case", FAULTS)
def test_upstream_faults(start: Start, case: str, profile: str) -> None:
    turn, status, code = FAULTS[case]
    proxy, _ = start([turn, {"items": ["well again"], "times": "always"}], profile, PROXY_RESPONSES_SKIP_TURN="true")
    refused = proxy.responses({"input": "hi"})
    assert (refused.status, refused.json["error"]["code"]) == (status, code), refused.body
    assert proxy.responses({"input": "hi"}).status == 200


def test_a_client_that_goes_away_frees_its_turn(start: Start, tmp_path: Path) -> None:
    said = tmp_path / "said.ndjson"
    watched = tmp_path / "codex"
    watched.write_text(f'#!/bin/sh\n"{find_installed("0.92.0")}" "$@" | tee "{said}"\n')
    watched.chmod(0o755)
    script = [{"match": "first", "items": ["half", {"type": "gate", "name": "held"}, "rest"]}, {"items": ["next"]}]
    proxy, session = start(script, CODEX_BIN=str(watched))
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    body = json.dumps({"model": "gpt-5.2", "stream": True, **user("first")})
    connection.request("POST", "/v1/chat/completions", body, {"authorization": "Bearer key"})
    response = connection.getresponse()
    assert response.fp is not None
    assert response.readline().startswith(b"data: ")
    assert session.wait_at_gate("held")
    response.close()
    connection.close()
    assert proxy.chat(user("second")).json["choices"][0]["message"]["content"] == "next"
    assert proxy.close() == 0  # and with it Codex, whose words are all written then
    frames = [json.loads(line) for line in said.read_bytes().splitlines()]
    ends = [frame["params"]["turn"]["status"] for frame in frames if frame.get("method") == "turn/completed"]
    assert ends == ["interrupted", "completed"]


def test_many_clients_never_mix(start: Start) -> None:
    proxy, session = start([{"match": f"<{number}>", "items": [f"answer {number}"]} for number in range(12)])

    def one(number: int) -> bool:
        return bool(proxy.chat(user(f"<{number}>")).json["choices"][0]["message"]["content"] == f"answer {number}")

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(one, range(12)))
    assert len(posts(session)) == 12


def test_as_specified_the_model_is_told_of_the_tools_in_the_instructions(start: Start) -> None:
    said = '<tool_call>{"name":"add","arguments":"{\\"a\\":1}"}</tool_call>'
    proxy, session = start([{"items": [said], "times": "always"}], "as-specified")
    calls = proxy.chat({**user(), "tools": [NESTED]}).json["choices"][0]["message"]["tool_calls"]
    sent = posts(session)
    assert len(calls) == len(sent)  # one or two: turn and message carry the same items
    assert "Tool calling instructions:" in json.dumps(sent[0]["body"]["input"])
    assert "add" not in [tool.get("name") for tool in sent[0]["body"]["tools"]]


def test_as_specified_without_the_turn_it_is_one_model_call(start: Start) -> None:
    proxy, session = start(["One."], "as-specified", PROXY_RESPONSES_SKIP_TURN="true")
    whole = proxy.responses({"input": "hi"}).json
    assert whole["output"][0]["content"][0]["text"] == "One."
    assert whole["usage"]["total_tokens"] > 0
    assert len(posts(session)) == 1


PROBE = Path(__file__).with_name("proxy_sdk_probe.py")


@pytest.mark.parametrize("package", ["openai-1", "openai-3"])
def test_the_openai_sdk_takes_it_for_the_api(package: str, tmp_path: Path) -> None:
    calls = plan(say=["a"], calls=[["add", '{"a":1}'], ["add", '{"a":2}']])
    failing = plan(fail=["x", "usageLimitExceeded", "usage_limit_exceeded"])
    with running(tmp_path) as proxy:
        url = f"http://127.0.0.1:{proxy.port}/v1"
        asked = [python_with(package), str(PROBE), url, plan(say=["Hel", "lo"]), calls, failing]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert "gpt-5.2" in report.pop("models")
    made, refused = [["add", '{"a":1}'], ["add", '{"a":2}']], ["RateLimitError", "insufficient_quota"]
    assert report == {
        "chat": ["Hello", "Hello"],
        "chat calls": made,
        "chat calls streamed": made,
        "responses": ["Hello", "Hello"],
        "responses calls": made,
        "chat error": refused,
        "responses error": refused,
    }
