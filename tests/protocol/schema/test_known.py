from __future__ import annotations

import pytest

from codex_replay.protocol.schema import bundle, known, validate

BUNDLE = bundle.load()
VALIDATOR = validate.Validator(BUNDLE)

TURN = {
    "conversationId": "c",
    "items": [{"type": "text", "data": {"text": "hi"}}],
    "cwd": "/",
    "approvalPolicy": "never",
    "sandboxPolicy": {"type": "read-only"},
    "model": "m",
    "summary": "auto",
}
THREAD = "00000000-0000-7000-8000-000000000000"


def check(sender, *frames):
    checker = validate.RpcChecker(BUNDLE, VALIDATOR)
    for frame in frames[:-1]:
        assert checker.check({"client": "server", "server": "client"}[sender], frame) == []
    return checker.check(sender, frames[-1])


def call(method, params):
    return {"id": 1, "method": method, "params": params}


@pytest.mark.parametrize("key", ["tools", "choiceCount", "choice_count", "output_schema", "reasoning", "stream"])
def test_a_key_that_0_92_ignores_is_valid_and_not_known(key):
    # REAL-45: these validate and are silently ignored.
    frame = call("sendUserTurn", {**TURN, key: 1})
    assert VALIDATOR.frame_schema("client", "sendUserTurn").is_valid(frame)
    (found,) = check("client", frame)
    assert (found.kind, found.verdict, found.path) == ("unknown-key", "known", f"sendUserTurn.params.{key}")
    assert found.blame == "client"


def test_the_nearest_known_name_and_the_methods_that_know_the_key():
    (found,) = check("client", call("newConversation", {"dynamicTools": []}))
    assert found.path == "newConversation.params.dynamicTools"
    assert found.message.endswith("The key is known on thread/start.")
    (found,) = check("client", call("thread/start", {"dynamic_tools": []}))
    assert found.message.endswith("Did you mean `dynamicTools`?")
    (found,) = check("client", call("sendUserTurn", {**TURN, "output_schema": {}}))
    assert found.message.endswith("Did you mean `outputSchema`?")


@pytest.mark.parametrize(
    ("sender", "frame", "path"),
    [
        ("client", call("turn/start", {"threadId": "t", "input": [{"type": "text", "text": "", "x": 1}]}), "input[0].x"),
        ("client", call("sendUserTurn", {**TURN, "sandboxPolicy": {"type": "read-only", "x": 1}}), "sandboxPolicy.x"),
        ("client", call("initialize", {"clientInfo": {"name": "a", "version": "1", "x": 1}}), "clientInfo.x"),
    ],
)
def test_unknown_keys_are_found_at_depth_and_through_unions(sender, frame, path):
    (found,) = check(sender, frame)
    assert (found.kind, found.path) == ("unknown-key", f"{frame['method']}.params.{path}")


@pytest.mark.parametrize(
    "frame",
    [
        call("thread/start", {"config": {"anything": {"goes": [{"here": 1}]}}}),
        call("thread/start", {"dynamicTools": [{"name": "n", "description": "d", "inputSchema": {"free": {"form": 1}}}]}),
        call("turn/start", {"threadId": "t", "input": [], "outputSchema": {"x": {"y": 1}}}),
        call("getConversationSummary", {"rolloutPath": "p", "conversationId": "c"}),
        {"method": "initialized", "params": {}},
        {"jsonrpc": "2.0", **call("thread/start", {})},
    ],
)
def test_open_places_stay_open(frame):
    assert check("client", frame) == []


def test_the_frame_itself_is_closed():
    (found,) = check("client", {**call("thread/start", {}), "extra": 1})
    assert (found.kind, found.verdict, found.path) == ("unknown-key", "known", "thread/start.extra")
    event = {"id": "0", "msg": {"type": "shutdown_complete"}, "conversationId": THREAD}
    good = {"method": "codex/event/shutdown_complete", "params": event}
    assert check("server", good) == []
    (found,) = check("server", {"jsonrpc": "2.0", **good})
    assert found.path == "codex/event/shutdown_complete.jsonrpc"
    (found,) = check("server", {**good, "params": {**event, "thread_id": "x"}})
    assert found.path == "codex/event/shutdown_complete.params.thread_id"


def test_an_event_under_another_events_name_is_told():
    event = {"id": "0", "msg": {"type": "shutdown_complete"}, "conversationId": THREAD}
    (found,) = check("server", {"method": "codex/event/undo_started", "params": event})
    assert (found.kind, found.path) == ("unknown-tag", "codex/event/undo_started.params.msg.type")


def test_results_are_judged_by_the_method_that_asked():
    ask = call("item/tool/call", {"threadId": "t", "turnId": "1", "callId": "c", "tool": "x", "arguments": {}})
    assert check("client", ask, {"id": 1, "result": {"output": "", "success": True}}) == []
    missing, unknown = check("client", ask, {"id": 1, "result": {"output": "", "succes": True}})
    assert (missing.kind, missing.path, missing.verdict) == ("missing-required", "item/tool/call.result.success", "valid")
    assert (unknown.kind, unknown.path, unknown.verdict) == ("unknown-key", "item/tool/call.result.succes", "known")
    assert unknown.message.endswith("Did you mean `success`?")


def test_ids_of_the_two_sides_are_separate():
    checker = validate.RpcChecker(BUNDLE, VALIDATOR)
    params = {"threadId": "t", "turnId": "1", "callId": "c", "tool": "x", "arguments": {}}
    assert checker.check("client", {"id": 0, "method": "getUserAgent"}) == []
    assert checker.check("server", {"id": 0, "method": "item/tool/call", "params": params}) == []
    assert checker.check("client", {"id": 0, "result": {"output": "", "success": True}}) == []
    assert checker.check("server", {"id": 0, "result": {"userAgent": "u"}}) == []
    (found,) = checker.check("server", {"id": 0, "result": {"userAgent": "u"}})
    assert (found.kind, found.blame) == ("no-such-request", "server")


def test_ids_that_look_alike_are_not_alike():
    for other in ("0", False, 0.5, None, [0], {}):
        found = check("server", {"id": 0, "method": "getUserAgent"}, {"id": other, "result": {"userAgent": "u"}})
        assert [v.kind for v in found] == ["no-such-request"], other


def test_an_id_used_twice_stands_for_both_requests():
    checker = validate.RpcChecker(BUNDLE, VALIDATOR)
    checker.check("client", {"id": 1, "method": "getUserAgent"})
    checker.check("client", {"id": 1, "method": "userInfo"})
    assert checker.check("server", {"id": 1, "result": {"allegedUserEmail": None}}) == []
    assert checker.check("server", {"id": 1, "result": {"userAgent": "u"}}) == []
    assert [v.kind for v in checker.check("server", {"id": 1, "result": {}})] == ["no-such-request"]


def test_an_answer_to_an_invalid_request_is_still_an_answer():
    # The real server answers such requests with an error; it must not be blamed for that.
    for bad in ({"id": 7, "method": "bogus"}, {"id": 7, "method": "thread/start"}):
        checker = validate.RpcChecker(BUNDLE, VALIDATOR)
        assert len(checker.check("client", bad)) == 1
        assert checker.check("server", {"id": 7, "error": {"code": -32600, "message": "m"}}) == []


@pytest.mark.parametrize("value", [None, 1, "x", True, 1.5, [], [{}], {}, {"id": 1}, {"method": 3}, {"params": {}}])
def test_what_is_no_json_rpc_message_is_told(value):
    (found,) = check("client", value)
    assert (found.kind, found.verdict) == ("not-json-rpc", "valid")


def test_a_method_of_the_other_side_is_told():
    (found,) = check("server", call("thread/start", {}))
    assert found.kind == "unknown-method"
    assert "Only the client may send this method." in found.message
    (found,) = check("client", {"id": 1, "method": "initialized"})
    assert found.kind == "unknown-method"
    assert "is a notification" in found.message


def test_text_that_is_no_text_does_not_break_the_check():
    # Python decodes a lone surrogate that JSON may escape; neither Rust nor a report can write it.
    for frame in (call("thread/start", {"\ud800": 1}), call("\ud800", {}), call("thread/start", {"sandbox": "\ud800"})):
        (found,) = check("client", frame)
        (found.path + found.message).encode()
    deep = 1
    for _ in range(2000):
        deep = [deep]
    assert check("client", call("thread/start", {"config": {"a": deep}})) == []
    (found,) = check("client", call("thread/start", {"sandbox": "x" * 1_000_000}))
    assert len(found.message) < 400


def test_corrections_are_what_the_binary_says_and_no_more():
    def item(value):
        event = {"id": "0", "msg": {"type": "raw_response_item", "item": value}, "conversationId": THREAD}
        return check("server", {"method": "codex/event/raw_response_item", "params": event})

    output = {"type": "function_call_output", "call_id": "c"}
    assert item({**output, "output": "text"}) == []
    assert item({**output, "output": [{"type": "input_text", "text": "x"}]}) == []
    assert [v.kind for v in item({**output, "output": {"content": "x"}})] == ["wrong-type"]
    assert item({"type": "reasoning", "summary": []}) == []
    assert [v.path[-8:] for v in item({"type": "reasoning"})] == [".summary"]


def test_nearest_prefers_the_same_name_in_another_spelling():
    assert known.nearest("call_id", ["callId", "callIds"]) == "callId"
    assert known.nearest("threadID", ["threadId"]) == "threadId"
    assert known.nearest("zz", ["callId"]) is None


def test_the_open_schema_alone_would_miss_unknown_keys(monkeypatch):
    # A broken subject: were the closed schema not closed, every unknown key would pass.
    schema = VALIDATOR.frame_schema("client", "sendUserTurn")
    monkeypatch.setattr(schema, "holds", schema.is_valid)
    assert check("client", call("sendUserTurn", {**TURN, "choiceCount": 1})) == []


def test_a_frame_too_deep_to_judge_is_told():
    message = {"type": "wrong"}
    for _ in range(3000):
        message = {"type": "session_configured", "initial_messages": [message]}
    params = {"id": "0", "msg": message, "conversationId": THREAD}
    (found,) = check("server", {"method": "codex/event/session_configured", "params": params})
    assert (found.kind, found.verdict) == ("other", "valid")
    assert "nested too deeply" in found.message
