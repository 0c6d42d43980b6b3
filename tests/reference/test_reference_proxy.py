"""The reference proxy as a program in front of a stand-in that does what the prompt says."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from codex_replay.reference.proxy.answering.events import Delta, Event, Item, Replies, Usage
from tests.reference.proxy_driver import FLAT, NESTED, Proxy, call, plan, running
from tests.support.processes import ended

# -- the program -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["as-specified", "works-on-0.92"])
def proxy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with running(tmp_path_factory.mktemp("proxy"), PROXY_PROFILE=request.param) as found:
        yield found


def ask(**what: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": plan(**what)}]}


def test_health_models_and_keys(proxy: Proxy) -> None:
    assert proxy.ask("GET", "/health", headers={"authorization": ""}).json["status"] == "ok"
    assert {"gpt-5.2", "gpt-5.2-codev-l"} <= {model["id"] for model in proxy.ask("GET", "/v1/models").json["data"]}
    assert proxy.ask("GET", "/v1/models/gpt-5.2").json["id"] == "gpt-5.2"
    for path, method in (("/v1/models", "GET"), ("/v1/responses", "POST"), ("/v1/chat/completions", "POST")):
        refused = proxy.ask(method, path, {}, {"authorization": "Basic x"})
        assert (refused.status, refused.json["error"]["code"]) == (401, "invalid_api_key")
    assert proxy.ask("POST", "/v1/nothing", {}).status == 404
    assert proxy.ask("GET", "/v1/responses").status == 405
    assert proxy.ask("POST", "/v1/responses", b"{").status == 400
    assert proxy.ask("GET", "/health", headers={"x-request-id": "mine"}).headers["x-request-id"] == "mine"


def test_a_chat_whole_and_in_chunks(proxy: Proxy) -> None:
    whole = proxy.chat({**ask(say=["Hel", "lo"], odd=True), "model": "gpt-5.2-codev-l"}).json
    assert whole["choices"][0]["message"]["content"] == "Hello"
    assert (whole["model"], whole["choices"][0]["finish_reason"]) == ("gpt-5.2-codev-l", "stop")
    assert whole["usage"]["total_tokens"] == 13
    assert whole["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}
    events = proxy.chat({**ask(say=["Hel", "lo"]), "stream": True, "stream_options": {"include_usage": True}}).events
    assert events[-1] == "[DONE]"
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in events[:-2]) == "Hello"
    assert [event["choices"][0]["finish_reason"] for event in events[:-2]][-1] == "stop"
    assert events[-2]["usage"]["completion_tokens"] == 3


def test_responses_whole_and_as_events(proxy: Proxy) -> None:
    whole = proxy.responses({"input": plan(say=["Hello"], more=["Again"])}).json
    assert [item["content"][0]["text"] for item in whole["output"]] == ["Hello", "Again"]
    assert whole["usage"]["output_tokens_details"] == {"reasoning_tokens": 1}
    events = proxy.responses({"input": plan(say=["Hel", "lo\u2028"]), "stream": True}).events
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hello\u2028"


@pytest.mark.parametrize("mode", ["openai-json", "obsidian-xml"])
def test_calls_in_the_text(proxy: Proxy, mode: str) -> None:
    said = ["a <tool", '_call>{"name":"add","argum', 'ents":{"a": 1}}</tool_call>', ' b <tool_call>{"na']
    message = proxy.chat({**ask(say=said), "tools": [NESTED]}, x_proxy_output_mode=mode).json["choices"][0]["message"]
    whole = proxy.responses({"input": plan(say=said), "tools": [FLAT]}, x_proxy_output_mode=mode).json
    streamed = proxy.responses({"input": plan(say=said), "tools": [FLAT], "stream": True}, x_proxy_output_mode=mode).events
    kinds = [item["type"] for item in whole["output"]]
    assert [item["type"] for item in streamed[-1]["response"]["output"]] == kinds
    if mode == "openai-json":
        assert message["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
        assert message["content"] == "a  b "
        assert kinds == ["message", "function_call", "message"]
        deltas = [event["delta"] for event in streamed if event["type"] == "response.output_text.delta"]
        assert "".join(deltas) == "a  b "
    else:
        markup = '<tool_call>{"name":"add","arguments":"{\\"a\\": 1}"}</tool_call>'
        assert message["content"] == f"a {markup} b "
        assert "tool_calls" not in message
        assert whole["output"][0]["content"][0]["text"] == message["content"]


def test_native_calls_end_the_turn_and_leave_nothing_open(proxy: Proxy) -> None:
    before = len(proxy.frames())
    body = {**ask(say=["Let me."], calls=[["add", '{"a": 1}'], ["add", '{"a": 2}']]), "tools": [NESTED]}
    choice = proxy.chat(body).json["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    v2 = bool(proxy.calls("turn/start"))
    wanted = [("call_0", '{"a": 1}'), ("call_1", '{"a": 2}')] if v2 else [("call_0", '{"a":1}')]
    assert [(c["id"], c["function"]["arguments"]) for c in choice["message"]["tool_calls"]] == wanted
    assert proxy.chat(ask(say=["next"])).json["choices"][0]["message"]["content"] == "next"
    frames = [frame for _, frame in proxy.frames()[before:]]
    interrupt = next(at for at, frame in enumerate(frames) if frame.get("method") in ("turn/interrupt", "interruptConversation"))
    answers = [frame for frame in frames[interrupt:] if frame.get("id") == 78 and "result" in frame]
    assert [answer["result"]["success"] for answer in answers] == [False]
    assert proxy.chat({**body, "parallel_tool_calls": False}).json["choices"][0]["message"]["tool_calls"][1:] == []


def test_without_tools_markup_is_text(proxy: Proxy) -> None:
    assert proxy.chat(ask(say=[call()])).json["choices"][0]["message"]["content"] == call()
    quiet = proxy.chat({**ask(say=[call()]), "tools": [NESTED], "tool_choice": "none"}).json
    assert quiet["choices"][0]["message"]["content"] == call()


def test_what_another_thread_says_is_not_heard(proxy: Proxy) -> None:
    answer = proxy.chat(ask(say=["mine"], foreign=True)).json
    assert answer["choices"][0]["message"]["content"] == "mine"


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("item/commandExecution/requestApproval", {"decision": "decline"}),
        ("item/fileChange/requestApproval", {"decision": "decline"}),
        ("execCommandApproval", {"decision": "denied"}),
        ("applyPatchApproval", {"decision": "denied"}),
        ("item/tool/requestUserInput", {"answers": {}}),
        ("item/unheard/of", None),
    ],
)
def test_what_the_server_asks_is_answered(proxy: Proxy, method: str, answer: Any) -> None:
    assert proxy.chat(ask(ask=[method, {}], say=["after"])).json["choices"][0]["message"]["content"] == "after"
    replies = [frame for _, frame in proxy.frames() if frame.get("id") == 77]
    assert replies[-1]["jsonrpc"] == "2.0"
    assert replies[-1].get("result") == answer


def test_an_upstream_error_is_an_http_error_or_ends_the_stream(proxy: Proxy) -> None:
    fail = ["too long", "contextWindowExceeded", "context_window_exceeded"]
    for stream in (False, True):
        refused = proxy.chat({**ask(fail=fail), "stream": stream})
        assert (refused.status, refused.json["error"]["code"]) == (400, "context_length_exceeded")
    chunks = proxy.chat({**ask(say=["half"], fail=fail), "stream": True}).events
    assert chunks[-2]["error"]["code"] == "context_length_exceeded"
    assert chunks[-1] == "[DONE]"
    events = proxy.responses({"input": plan(say=["half"], fail=fail), "stream": True}).events
    assert (events[-1]["type"], events[-1]["response"]["error"]["code"]) == ("response.failed", "context_length_exceeded")
    assert proxy.chat(ask(refuse=True)).status == 502


@pytest.mark.parametrize(("how", "status"), [("die", 502), ("hang", 504)])
def test_a_server_that_dies_or_hangs_is_replaced(proxy: Proxy, how: str, status: int) -> None:
    assert proxy.chat(ask(**{how: True})).status == status
    events = proxy.responses({"input": plan(say=["half"], **{how: True}), "stream": True}).events
    assert events[-1]["type"] == "response.failed"
    assert proxy.chat(ask(say=["again"])).json["choices"][0]["message"]["content"] == "again"


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_whose_end_is_lost_ends_all_the_same(tmp_path: Path, stream: bool) -> None:
    """0.92 loses it now and then: the last reply is known by its raw items and its usage, long before the idle timeout."""
    with running(tmp_path, PROXY_PROFILE="works-on-0.92", PROXY_IDLE_TIMEOUT_MS="60000") as proxy:
        done = proxy.responses({"input": plan(say=["all"], raw=["message"], lost=True), "stream": stream})
        response = done.events[-1]["response"] if stream else done.json
        assert (response["status"], response["output"][0]["content"][0]["text"]) == ("completed", "all")
        assert proxy.calls("turn/interrupt") == [], "a turn that is through answers no interrupt"
        assert proxy.chat(ask(say=["next"])).json["choices"][0]["message"]["content"] == "next"


def test_a_reply_that_calls_is_not_the_last() -> None:
    usage, said, called = Usage(1, 0, 1, 0, 2), Item(False), Item(True)

    def through(*events: Event) -> list[bool]:
        replies = Replies()
        found = []
        for event in events:
            replies.saw(event)
            found.append(replies.through)
        return found

    assert through(Item(False), said, usage, usage) == [False, False, True, True]
    assert through(said, called, usage, usage, Item(False), Delta("m", "x"), said, usage) == [*[False] * 7, True]
    assert through(said, usage, Delta("m", "x")) == [False, True, False], "it goes on"
    assert through(usage) == [False], "no reply has come"


def test_a_client_that_goes_away_frees_its_turn(proxy: Proxy) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=120)
    body = json.dumps({"model": "gpt-5.2", "stream": True, **ask(say=["half"], wait=True)})
    connection.request("POST", "/v1/chat/completions", body, {"authorization": "Bearer key"})
    response = connection.getresponse()
    assert response.fp is not None
    assert response.readline().startswith(b"data: ")
    before = len(proxy.calls("turn/interrupt") + proxy.calls("interruptConversation"))
    response.close()
    connection.close()
    assert proxy.chat(ask(say=["next"])).status == 200
    waited = threading.Event()
    for _ in range(100):
        if len(proxy.calls("turn/interrupt") + proxy.calls("interruptConversation")) > before:
            break
        waited.wait(0.05)
    else:
        pytest.fail("the turn was never interrupted")


def test_many_clients_never_mix(proxy: Proxy) -> None:
    def one(number: int) -> tuple[int, str]:
        word = f"answer {number}"
        if number % 2:
            return number, proxy.chat(ask(say=list(word))).json["choices"][0]["message"]["content"]
        return number, proxy.responses({"input": plan(say=[word])}).json["output"][0]["content"][0]["text"]

    with ThreadPoolExecutor(8) as pool:
        assert all(text == f"answer {number}" for number, text in pool.map(one, range(24)))


def test_the_calls_and_their_envelopes(tmp_path: Path) -> None:
    with running(tmp_path, PROXY_PROFILE="as-specified", PROXY_RESPONSES_SKIP_TURN="true", PROXY_API_KEYS="a,key") as proxy:
        assert proxy.ask("GET", "/v1/models", headers={"authorization": "Bearer b"}).status == 401
        proxy.chat({"messages": [{"role": "user", "content": "hi"}]})
        proxy.responses({"input": "hi"})
        proxy.responses({"input": "Generate a title for this conversation:\nUser: hello"})
        frames = [frame for _, frame in proxy.frames()]
    assert [frame["method"] for frame in frames] == [
        "initialize", "initialized", "newConversation", "addConversationListener", "sendUserTurn", "sendUserMessage",
        "newConversation", "addConversationListener", "sendUserMessage",
    ]  # fmt: skip
    assert {frame["jsonrpc"] for frame in frames} == {"2.0"}
    ids = [frame["id"] for frame in frames if "id" in frame]
    assert len(set(ids)) == len(ids) == 8
    assert frames[4]["params"]["items"] == frames[5]["params"]["items"] == [{"type": "text", "data": {"text": "[user] hi"}}]
    assert frames[8]["params"]["items"] == [{"type": "text", "data": {"text": "hi"}}]


def test_one_submission_a_request_on_092(tmp_path: Path) -> None:
    with running(tmp_path) as proxy:
        proxy.chat({"messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "high"})
        assert [frame["method"] for _, frame in proxy.frames()] == ["initialize", "initialized", "thread/start", "turn/start"]
        assert proxy.calls("turn/start")[0]["effort"] == "high"
        assert proxy.chat({"messages": [{"role": "user", "content": "hi"}], "n": 2}).status == 400


def test_several_app_servers_share_the_work_and_all_end_with_the_proxy(tmp_path: Path) -> None:
    with running(tmp_path, PROXY_CHILDREN="2") as proxy, ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: proxy.chat(ask(hang=True)).status, range(2)))
        assert done == [504, 504]
        pids = {pid for pid, _ in proxy.frames()}
        assert len(pids) == 2
        assert proxy.chat(ask(say=["x"])).status == 200
        pids |= {pid for pid, _ in proxy.frames()}
        assert proxy.close() == 0
    assert [pid for pid in pids if not ended(pid)] == []


@pytest.mark.parametrize("profile", ["as-specified", "works-on-0.92"])
def test_a_server_that_does_not_reply_is_replaced(tmp_path: Path, profile: str) -> None:
    with running(tmp_path, PROXY_PROFILE=profile, PROXY_RPC_TIMEOUT_MS="2500") as proxy:
        refused = proxy.chat(ask(mute=True))
        assert (refused.status, refused.json["error"]["code"]) == (504, "app_server_timeout")
        assert proxy.chat(ask(say=["again"])).json["choices"][0]["message"]["content"] == "again"
        assert len({pid for pid, _ in proxy.frames()}) == 2


def test_a_server_that_cannot_be_started_is_a_502(tmp_path: Path) -> None:
    with running(tmp_path, CODEX_BIN=str(tmp_path / "nowhere")) as proxy:
        refused = proxy.chat(ask())
        assert (refused.status, refused.json["error"]["code"]) == (502, "app_server_gone")
        assert proxy.ask("GET", "/health").status == 200


def test_http_at_its_edges(proxy: Proxy) -> None:
    def raw(data: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=120) as client:
            client.sendall(data)
            found = b""
            while chunk := client.recv(65536):
                found += chunk
            return found

    assert b" 400 " in raw(b"nonsense\r\n\r\n").split(b"\r\n")[0]
    old = raw(b"GET /health HTTP/1.0\r\n\r\n")
    assert b" 200 " in old.split(b"\r\n")[0]
    body = json.dumps({"model": "m", "stream": True, **ask(say=["old"])}).encode()
    head = b"POST /v1/chat/completions HTTP/1.0\r\nauthorization: Bearer k\r\ncontent-length: %d\r\n\r\n" % len(body)
    assert b"chunked" not in (stream := raw(head + body))
    assert stream.endswith(b"data: [DONE]\n\n")
    two = raw(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\nGET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert two.count(b'"status":"ok"') == 2


def test_bad_settings_end_it_with_a_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(json.JSONDecodeError):
        Proxy({"PROXY_PROFILE": "wrong"})
    assert "PROXY_PROFILE is 'wrong'; it must be as-specified, works-on-0.92, speaks-v2." in capfd.readouterr().err


def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    with running(tmp_path) as proxy:
        assert proxy.chat(ask()).status == 200
        proxy.process.send_signal(signal.SIGINT)
        assert proxy.process.wait(10) == 0
