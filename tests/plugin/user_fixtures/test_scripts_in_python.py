"""Scripts in Python: the builder, a file, and a function as the model."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_replay import BadScript, CodexBackend, Request, ScriptBuilder, TurnBuilder
from codex_replay.protocol.script.keys import ITEM_KEYS, TURN_KEYS
from codex_replay.protocol.script.script import parse


def ask(backend: CodexBackend, *items: Any, path: str = "/responses", **more: Any) -> dict[str, Any]:
    """Send a request without `stream`; return the response, or the error object with its status."""
    body = {"model": "m", "input": list(items) if items and not isinstance(items[0], str) else "".join(items), **more}
    request = urllib.request.Request(backend.url + "/v1" + path, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            data = response.read().decode()
            last = data.splitlines()[-2].removeprefix("data: ") if more.get("stream") else data
            found: dict[str, Any] = json.loads(last)
            return found.get("response", found)  # type: ignore[no-any-return]
    except urllib.error.HTTPError as error:
        with error:
            return {"status": error.code, **json.load(error)["error"]}


def text(response: dict[str, Any]) -> str:
    return "".join(part["text"] for item in response["output"] for part in item.get("content", []))


def test_the_builder_writes_every_item_and_key() -> None:
    script = ScriptBuilder(otherwise="default")
    turn = (
        script.turn()
        .queued()
        .text("a", deltas=["a"], phase="commentary")
        .refusal("no")
        .call("f", a=1)
        .call("g", "{", call_id="c")
    )
    turn.custom_call("p", "x").search("cats").reasoning(["a", "b"], content="c", encrypted_content="e").item({"type": "x"})
    turn.file_search("q").code_interpreter("1").image().mcp_tools("s", {"name": "f"}).mcp_call("f", {"a": 1}, error={"type": "x"})
    turn.mcp_approval("f").computer().local_shell("ls").shell("ls").shell_output({"stdout": "a"}).compaction().audio("AAAA", "Hi")
    turn.apply_patch({"type": "delete_file", "path": "a"})
    turn.event({"type": "e"}).raw("r").comment("c").wait(1).gate("g").error("server_error", "m")
    match = {"prompt": ["a"], "user": "u", "pattern": "p", "tool": "t", "instructions": "i", "turn": 2, "model": "m"}
    turn.when(**match).expect(model="m").fault("cut", after=3)  # type: ignore[arg-type]
    turn.times("always").usage(input_tokens=1).set(delta=3, delay_ms=1)
    script.turn().failed("server_error")
    script.turn().incomplete("content_filter")
    script.turn().status(500, error={"message": "m"}, headers={"a": "b"})
    parsed = parse(script.as_json())
    assert {item["type"] for turn in parsed.turns for item in turn.items} == set(ITEM_KEYS)
    first = parsed.turns[0]
    assert first.items[3] == {"type": "function_call", "name": "f", "arguments": {"a": 1}}
    assert first.match == match
    assert (first.times, first.delta, first.fault) == (None, 3, {"name": "cut", "after": 3})
    assert (parsed.otherwise, parsed.turns[3].status) == ("default", 500)
    assert set(TURN_KEYS) - {"about"} >= set(script.as_json()["turns"][0])


def test_a_builder_plays(codex_backend: CodexBackend) -> None:
    script = ScriptBuilder()
    script.turn().call("add", a=1, b=2)
    script.turn().when(tool="3").text("It is 3.")
    codex_backend.script(script)
    call = ask(codex_backend, "1 + 2?")["output"][0]
    assert json.loads(call["arguments"]) == {"a": 1, "b": 2}
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "3"}
    assert text(ask(codex_backend, {"role": "user", "content": "1 + 2?"}, call, output)) == "It is 3."


@pytest.mark.parametrize(("name", "content"), [("s.json", '["Hello."]'), ("s.yaml", "- Hello.")])
def test_a_path_plays(codex_backend: CodexBackend, tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    codex_backend.script(path)
    assert text(ask(codex_backend, "Hi")) == "Hello."
    path.write_text("[7]")
    with pytest.raises(BadScript, match="turns"):
        codex_backend.script(path)


def returns_text(request: Request) -> str:
    return f"{request.turn}: {request.prompt}"


def returns_item(request: Request) -> dict[str, Any]:
    return {"type": "text", "text": returns_text(request)}


def returns_turn(request: Request) -> dict[str, Any]:
    return {"items": [returns_text(request)], "delta": 2}


def returns_list(request: Request) -> list[Any]:
    return ["1: ", TurnBuilder().text("Hi")]


def builds(request: Request) -> TurnBuilder:
    return TurnBuilder().text(returns_text(request))


def yields(request: Request) -> Iterator[Any]:
    yield "1: "
    yield {"type": "text", "text": request.prompt}


async def awaits(request: Request) -> str:
    await asyncio.sleep(0)
    return returns_text(request)


async def yields_later(request: Request) -> AsyncIterator[Any]:
    yield "1: "
    await asyncio.sleep(0)
    yield request.prompt


FUNCTIONS = [returns_text, returns_item, returns_turn, returns_list, builds, yields, awaits, yields_later]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_function_plays(codex_backend: CodexBackend, function: Any) -> None:
    codex_backend.script(function)
    for _ in range(2):
        assert text(ask(codex_backend, "Hi")) == "1: Hi"
    assert [request.prompt for request in codex_backend.requests] == ["Hi", "Hi"]


def test_a_function_sees_the_outputs_of_its_calls(codex_backend: CodexBackend) -> None:
    def model(request: Request) -> TurnBuilder:
        if not request.outputs:
            return TurnBuilder().call("add", a=1, call_id="c1")
        return TurnBuilder().text(f"{request.turn} {request.outputs['c1']}")

    codex_backend.script(model)
    call = ask(codex_backend, "Hi")["output"][0]
    output = {"type": "function_call_output", "call_id": "c1", "output": "5"}
    assert text(ask(codex_backend, {"role": "user", "content": "Hi"}, call, output)) == "2 5"


@pytest.mark.parametrize("key", ["previous_response_id", "conversation"])
def test_a_function_sees_the_turn_of_a_conversation_that_is_continued(codex_backend: CodexBackend, key: str) -> None:
    codex_backend.script(lambda request: f"turn {request.turn}")
    if key == "conversation":
        made = ask(codex_backend, path="/conversations")
        ask(codex_backend, "a", conversation=made["id"])
    else:
        made = ask(codex_backend, "a")
    assert text(ask(codex_backend, "b", **{key: made["id"]})) == "turn 2"


def test_a_function_that_returns_nothing_refuses_the_request(codex_backend: CodexBackend) -> None:
    codex_backend.lenient = True
    codex_backend.script(lambda request: None)
    sentence = 'The function that answers the requests returned None. Return "" for an empty reply.'
    assert ask(codex_backend, "hi")["message"] == sentence


@pytest.mark.parametrize("script", [TurnBuilder().text("Hello."), [TurnBuilder().text("Hello.")], "hello.json"])
def test_other_forms_of_a_script(codex_backend: CodexBackend, script: Any, tmp_path: Path) -> None:
    (tmp_path / "hello.json").write_text('["Hello."]')
    codex_backend.script(str(tmp_path / script) if isinstance(script, str) else script)
    assert text(ask(codex_backend, "hi")) == "Hello."


def test_a_text_is_no_script(codex_backend: CodexBackend) -> None:
    with pytest.raises(BadScript, match=re.escape("For a reply with this text, write a list: ['Hello.'].")):
        codex_backend.script("Hello.")


def test_requests_side_by_side_do_not_wait_for_each_other(codex_backend: CodexBackend) -> None:
    both = threading.Barrier(2, timeout=30)

    def model(request: Request) -> str:
        both.wait()
        return request.prompt

    codex_backend.script(model)
    found: list[str] = []
    threads = [threading.Thread(target=lambda n=n: found.append(text(ask(codex_backend, n)))) for n in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ["a", "b"]


def test_a_function_that_fails_refuses_the_request(codex_backend: CodexBackend) -> None:
    codex_backend.lenient = True

    def model(request: Request) -> Any:
        if request.prompt == "raise":
            raise KeyError("lost")
        return {"items": [{"type": "nonsense"}]}

    codex_backend.script(model)
    raised, wrong = ask(codex_backend, "raise"), ask(codex_backend, "Hi")
    assert (raised["status"], wrong["status"]) == (501, 501)
    assert "raised KeyError: 'lost'" in raised["message"]
    assert '"nonsense" is not a kind of item' in wrong["message"]
    assert len(codex_backend.problems) == 2


def test_another_script_ends_the_function(codex_backend: CodexBackend) -> None:
    codex_backend.script(lambda request: "old")
    assert text(ask(codex_backend, "Hi")) == "old"
    codex_backend.script(["new"])
    assert text(ask(codex_backend, "Hi")) == "new"


def test_captured_groups_are_in_the_reply(codex_backend: CodexBackend) -> None:
    script = ScriptBuilder()
    add = script.turn().when(pattern=r"add (?P<a>\d+) and (\d+)").times("always")
    add.call("add", {"a": "${a}", "b": "${2}"}).text("${0}: ${other} ${")
    codex_backend.script(script)
    for a, b in (("1", "2"), ("30", "40")):
        for stream in (False, True, True):
            response = ask(codex_backend, f"Please add {a} and {b}.", stream=stream)
            assert json.loads(response["output"][0]["arguments"]) == {"a": a, "b": b}
            assert text(response) == f"add {a} and {b}: ${{other}} ${{"
