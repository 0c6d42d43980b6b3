"""The answers that a client sees when the app-server is Codex 0.92. Source: docs/contract/real-0.92.md, sections 4 and 5."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from codex_replay.plugin.proxy.no_end import SUBMISSIONS
from suites.proxy.answers import arguments, must_have_messages, must_say, read
from suites.proxy.expected import ENDLESS, ENDPOINTS, NOTE, WORKS, asking, many_tools, native, tool
from suites.proxy.failures import (
    AT_ONCE,
    DIED,
    FREED,
    THINKS,
    failure,
    killed_in_turn,
    must_come_of_the_fault,
    served_again,
    with_optional,
)
from suites.proxy.reached import model_bodies
from suites.proxy.saying import must_be, must_be_answered, must_be_one_of, usage_of

pytestmark = pytest.mark.proxy_profile(WORKS)

STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
BOTH = pytest.mark.parametrize("endpoint", ENDPOINTS)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"sum": {"type": "number"}},
    "required": ["sum"],
    "additionalProperties": False,
}
WIDE = "aa\u2028b \U0001f600\u0085 é " * 40


@BOTH
@STREAM
@pytest.mark.model("Once.")
@pytest.mark.spec("one-model-call", "REAL-80")
def test_one_request_is_one_model_call(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """For one request of the client, the model gets exactly one request."""
    done = proxy.post(endpoint, {"stream": stream})
    must_say(done, "Once.")
    # If a proxy submits the prompt twice, chance decides whether the app-server joins the two: each counts.
    asked = max(len(proxy.model_calls()), len(done.calls(*SUBMISSIONS)))
    must_be("The number of requests to the model for one request of the client", asked, 1)


@BOTH
@STREAM
@pytest.mark.model("First part. ", {"type": "reasoning", "summary": "hm"}, "Second part.")
@pytest.mark.spec("whole-turn", "REAL-98")
def test_the_answer_ends_at_the_turns_end(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The proxy ends its answer at the end of the turn, not at the first agent message; a turn may have several messages."""
    text = read(proxy.post(endpoint, {"stream": stream})).text
    must_have_messages(text, "First part.", "Second part.")
    for part in ("First part.", "Second part."):
        must_be(f"The number of times that {part!r}, a message of the turn, occurs in the text {text!r}", text.count(part), 1)
    assert "hm" not in text, f"the model's reasoning ('hm') is in the text of the answer: {text!r}"


#: A call of a command that no list of harmless commands has, and the beginnings of the decisions that let it run.
REMOVES = {"type": "function_call", "name": "shell_command", "arguments": {"command": "rm no-such-file"}, "call_id": "call_10"}
APPROVING = ("accept", "approved")
#: The texts and the sizes of their chunks; all are in one script, so that one process serves all. A pipe holds 65,536 bytes: the
#: text of 100K has seven bytes again and again, so that some of the reads of a proxy end inside a character.
CHUNKS: dict[str, tuple[str, int]] = {
    "37": (WIDE * 10, 37),
    "1": (WIDE, 1),
    "100K": ("\u2028x\u2028" * 34_000, 100_000),
    "fragments": (WIDE, 120),
}
#: The app-server writes 37 bytes at a time, so that writes end inside lines and inside characters.
FRAGMENTS = {"CODEX_REPLAY_PIECE": "37"}
IN_CHUNKS: list[dict[str, Any]] = [
    {
        "match": f"chunks of {name};",
        "items": [{"type": "text", "text": text, "deltas": [text[i : i + size] for i in range(0, len(text), size)]}],
        "times": "always",
    }
    for name, (text, size) in CHUNKS.items()
]


@BOTH
@STREAM
@pytest.mark.parametrize("size", CHUNKS)
@pytest.mark.spec("deltas", "EDIT-15")
def test_pieces_of_every_size(proxy: Proxy, endpoint: str, stream: bool, size: str) -> None:
    """The client gets the model's text unchanged, with small chunks, split lines, U+2028, emoji and a delta of 100 KB."""
    prompt = f"Give me chunks of {size};"
    body = asking(endpoint, prompt)
    env = FRAGMENTS if size == "fragments" else None
    done = proxy.post(endpoint, {**body, "stream": stream}, env=env, script=IN_CHUNKS)
    must_say(done, CHUNKS[size][0])


#: The turn of the model, the expected status (502: any 5xx), and the statement about this fault.
ERRORS: list[Any] = [
    pytest.param({"status": 429, "error": {"message": "slow down"}}, 429, "REAL-107", id="429"),
    pytest.param(
        {"items": [{"type": "failed", "code": "insufficient_quota", "message": "no money"}]}, 429, "REAL-103", id="quota"
    ),
    pytest.param(
        {"items": [{"type": "failed", "code": "context_length_exceeded", "message": "too long"}]}, 400, "REAL-102", id="context"
    ),
    pytest.param({"status": 500, "error": {"message": "oops"}}, 502, "REAL-108", id="500"),
    pytest.param({"items": [{"type": "incomplete", "reason": "max_output_tokens"}]}, 502, "REAL-99", id="incomplete"),
    pytest.param({"items": ["half"], "fault": "cut_before_completed"}, 502, "REAL-99", id="cut"),
]


def with_model(cases: list[Any], cited: bool = False) -> list[Any]:
    """Return the given cases; in each case, the model plays the turn that the case names.

    With `cited`, each case of the check `fault-status` cites only the statement about its own fault.
    """
    found = []
    for case in cases:
        turn, expected, statement = case.values
        marks = [pytest.mark.model(turns=[{**turn, **THINKS, "times": "always"}])]
        marks += [pytest.mark.spec("fault-status", statement)] if cited else []
        found.append(pytest.param(expected, id=case.id, marks=marks))
    return found


@BOTH
@pytest.mark.parametrize("expected", with_model(ERRORS, cited=True))
@pytest.mark.spec("fault-status", "REAL-99", "REAL-102", "REAL-103", "REAL-107", "REAL-108")
def test_a_fault_becomes_a_status(proxy: Proxy, endpoint: str, expected: int) -> None:
    """After a fault, the proxy answers 429 for a limit, 400 for a too long prompt, or a 5xx, with an error message."""
    done = proxy.post(endpoint, ok=False, within=AT_ONCE)
    must_come_of_the_fault(proxy, done)
    error = failure(done)
    assert isinstance(error, dict) and error.get("message"), f"the error of the answer must have a message: {error!r}"  # noqa: PT018
    fits = done.status == expected or (expected == 502 and 500 <= done.status < 600)
    wanted = "a server's error (5xx)" if expected == 502 else str(expected)
    assert fits, (
        f"{done.method} {done.path} must be answered {wanted} for this failed turn, "
        f"but was answered {done.answered}: {done.shown()}"
    )


@BOTH
@pytest.mark.parametrize("expected", with_model(ERRORS))
@pytest.mark.spec("fault-stream", "REAL-98")
def test_a_fault_in_a_stream(proxy: Proxy, endpoint: str, expected: int) -> None:
    """After a fault, the stream ends with an error, and does not look like a complete answer."""
    done = proxy.post(endpoint, {"stream": True}, ok=False, within=AT_ONCE)
    must_come_of_the_fault(proxy, done)
    assert failure(done), f"the error in the stream is empty: {done.shown(-300)}"
    if done.is_stream:
        ends = [e.value for e in done.events if isinstance(e.value, dict) and e.value.get("type") == "response.completed"]
        must_be("The response.completed events of a stream that failed", ends, [])


@BOTH
@pytest.mark.model(
    turns=[
        {"match": "Fail.", "status": 500, "error": {"message": "oops"}, **THINKS, "times": "always"},
        {"match": "Succeed.", "items": ["Better."], "times": "always"},
    ]
)
@pytest.mark.spec("fault-then-good", "REAL-98")
def test_the_request_after_a_fault(proxy: Proxy, endpoint: str) -> None:
    """After a failed turn, the next request succeeds."""
    must_come_of_the_fault(proxy, proxy.post(endpoint, asking(endpoint, proxy.prompt("Fail.")), ok=False, within=AT_ONCE))
    must_say(proxy.post(endpoint, asking(endpoint, proxy.prompt("Succeed."))), "Better.")


@BOTH
@pytest.mark.model('{"sum":5}')
@pytest.mark.spec("schema-reaches-model", "REAL-31", "REAL-45")
def test_a_schema_reaches_the_model(proxy: Proxy, endpoint: str) -> None:
    """The output schema reaches the model, or the proxy refuses it with an error that names the member.

    (0.92 ignores a schema in sendUserMessage, so the proxy must send it in another call.)
    """
    named = {"name": "sum", "schema": SCHEMA, "strict": True}
    chat = {"response_format": {"type": "json_schema", "json_schema": named}}
    body = chat if endpoint == "chat" else {"text": {"format": {"type": "json_schema", **named}}}
    if not with_optional(proxy, lambda **more: proxy.post(endpoint, more), **body)[1]:
        return
    schemas = [((call["body"].get("text") or {}).get("format") or {}).get("schema") for call in proxy.model_calls()]
    must_be("text.format.schema of each request to the model", schemas, [SCHEMA])


@BOTH
@pytest.mark.model("Hi.")
@pytest.mark.spec("tools-reach-model", "REAL-46", "REAL-47")
def test_declared_tools_reach_the_model(proxy: Proxy, endpoint: str) -> None:
    """The model gets the tools with name, description and parameters, as tools of the request or in the instructions."""
    # OpenAI once allowed 1,024 characters in a description, so that no proxy has a reason to cut this one.
    second = tool(endpoint, "saveNote", NOTE, description="Saves lanterns. " + "One by one. " * 80 + "Lights them.")
    tools = [tool(endpoint, "getFileTree", description="Lists herons."), second, *many_tools(endpoint)[2:]]
    proxy.post(endpoint, {"tools": tools})
    for body in model_bodies(proxy):
        message = json.dumps(body, ensure_ascii=False)
        if "getFileTree" not in message and "getfiletree" in message.lower():
            raise AssertionError(
                "The tool reached the model, but its name has other upper and lower case letters than the client's getFileTree: "
                "the client does not know a call of the changed name. Pass on the names of tools unchanged."
            )
        for word, what in (
            ("getFileTree", "the name of the tool"),
            ("Where to begin — «root»", "the schema of its parameters"),
            ("Lists herons.", "the description of the tool"),
            ("saveNote", "the name of the second tool"),
            ("title", "the schema of the parameters of the second tool"),
            ("Saves lanterns.", "the description of the second tool"),
            ("Lights them.", "the end of the description of the second tool, which has 988 characters,"),
            ("tool-125", f"the last of the {len(tools)} tools"),
        ):
            escaped = json.dumps(word)[1:-1].replace("\\", "\\\\")  # in a JSON text inside a text
            assert word in message or escaped in message, (
                f"{what} that the client declared ({word!r}) is not in the request to the model: {message[:1500]}"
            )


@BOTH
@pytest.mark.parametrize("lacks", ["description", "parameters"])
@pytest.mark.model("Hi.")
@pytest.mark.spec(
    "bare-tool-served",
    "HAND-27",
    "SCHEMA-08",
    source="OpenAI API reference, Chat Completions: tools; Responses: tools",
    says="Omitting `parameters` defines a function with an empty parameter list.",
)
def test_a_bare_tool_is_served(proxy: Proxy, endpoint: str, lacks: str) -> None:
    """A request with a tool without a description or parameters succeeds; the app-server refuses such a dynamic tool."""
    bare = tool(endpoint)
    function = bare["function"] if endpoint == "chat" else bare
    function[lacks] = None
    if lacks == "description" or endpoint == "chat":
        del function[lacks]  # only a function of a responses request always has `parameters`, which may be null
    done = proxy.post(endpoint, {"tools": [bare]}, ok=False)
    must_be_answered(done, 200, f"with a tool without {lacks}")
    must_say(done, "Hi.")
    for body in model_bodies(proxy):
        assert "getfiletree" in json.dumps(body, ensure_ascii=False).lower(), "the request to the model does not contain the tool"


@BOTH
@STREAM
@pytest.mark.needs("native-tools")
@pytest.mark.model(native())
@pytest.mark.spec("native-call", "REAL-62", "REAL-63", "SCHEMA-16")
def test_a_native_call_reaches_the_client(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The client gets each native tool call of the model once."""
    answer = read(proxy.post(endpoint, {"stream": stream, "tools": [tool(endpoint)]}))
    calls = [(call.name, arguments(call.arguments)) for call in answer.calls]
    must_be(
        "(name, arguments) of the calls that the client gets (in a stream, their pieces joined)",
        calls,
        [("getFileTree", {"path": "a"})],
    )


@BOTH
@pytest.mark.model(turns=[{"items": ["Mixed?"], "times": "always"}])
@pytest.mark.spec("many-clients", "REAL-50")
def test_many_clients_at_once(proxy: Proxy, endpoint: str) -> None:
    """Each of eight parallel requests (or as many as the proxy supports) gets its own answer and its own usage."""
    clients = min(8, proxy.clients)
    turns: list[dict[str, Any]] = [
        {"match": f"client-{n};", "items": [f"Answer {n}. " * 20], "times": "always", "usage": {"input_tokens": 100 + n}}
        for n in range(clients)
    ]
    proxy.process(script=turns)

    def one(n: int) -> Exchange:
        body = asking(endpoint, f"I am client-{n};")
        return proxy.post(endpoint, {**body, "stream": n % 2 == 0}, script=turns)

    with ThreadPoolExecutor(clients) as pool:
        for n, done in enumerate(pool.map(one, range(clients))):
            must_be(f"The text of the answer to client {n} of {clients} at once", read(done).text, f"Answer {n}. " * 20)
            if not done.is_stream:
                name = "prompt_tokens" if endpoint == "chat" else "input_tokens"
                must_be(f"usage.{name} of the answer to client {n} of {clients} at once", usage_of(done)[name], 100 + n)


@BOTH
@pytest.mark.model(
    turns=[
        {"match": "Begin.", **ENDLESS},
        {"match": "And next?", "items": ["Next."], "times": "always"},
    ]
)
@pytest.mark.spec("disconnect", "REAL-73")
def test_a_client_that_goes_away_frees_its_turn(proxy: Proxy, endpoint: str) -> None:
    """If a client disconnects, the proxy interrupts the turn (or ends the app-server), and the next request succeeds."""
    proxy.post(endpoint, {**asking(endpoint, proxy.prompt("Begin.")), "stream": True}, stop_after="word word", ok=False)

    def freed(frames: list[Any]) -> bool:
        if any(f.sender == "client" and f.kind == "request" and "nterrupt" in f.value["method"] for f in frames):
            return True
        return bool(frames) and not any(frame.child_runs() for frame in frames)

    proxy.eventually(freed, what=FREED)
    must_say(proxy.post(endpoint, asking(endpoint, proxy.prompt("And next?"))), "Next.")


@BOTH
@STREAM
@pytest.mark.spec("server-death-in-turn", "REAL-94")
@pytest.mark.model("")
def test_an_app_server_that_dies_in_mid_turn(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """If the app-server dies during a turn, the client gets an error immediately, and the proxy serves again."""
    pieces = ["Half of it. ", *["More. "] * 100]  # 5 s of one message, so that none is complete when the app-server dies
    items = [{"type": "text", "text": "".join(pieces), "deltas": pieces}]
    script = [
        {"match": proxy.marker, "items": items, "delay_ms": 50, "times": "always"},
        {"items": ["Next."], "times": "always"},
    ]
    report = killed_in_turn(proxy, endpoint, stream, script, begun=['"Half of it. '])
    assert failure(report, DIED), f"the error in the answer is empty: {report.shown(-300)}"
    must_say(served_again(proxy, endpoint, script=script), "Next.")


@BOTH
@STREAM
@pytest.mark.model(
    turns=[
        {"items": [{"type": "function_call", "name": "shell_command", "arguments": {"command": "touch x"}, "call_id": "call_7"}]},
        {"items": ["So be it."]},
    ]
)
@pytest.mark.spec("server-requests", "REAL-52", "REAL-58")
def test_what_the_server_asks_is_answered(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The proxy answers each request of the app-server, because a request without an answer would block the turn."""
    done = proxy.post(endpoint, {"stream": stream}, env={"PROXY_APPROVAL_POLICY": "untrusted"}, ok=False)
    asked = [frame.value["id"] for frame in done.frames if frame.sender == "server" and frame.kind == "request"]
    answered = [frame.value["id"] for frame in done.frames if frame.sender == "client" and frame.kind in ("response", "error")]
    assert asked, (
        "With PROXY_APPROVAL_POLICY=untrusted the app-server must request an approval for a command, but it requested none: "
        f"pass the policy to the app-server. The status of the answer is {done.status}: {done.shown()}"
    )
    must_be("The ids of the app-server's requests that got no answer", [each for each in asked if each not in answered], [])
    if done.status < 400:
        must_say(done, "So be it.")


@BOTH
@pytest.mark.model(turns=[{"items": [REMOVES]}, {"items": ["So be it."]}])
@pytest.mark.spec("approvals-withheld", "REAL-52", "REAL-54", "REAL-58")
def test_no_command_is_approved_for_nobody(proxy: Proxy, endpoint: str) -> None:
    """With the policy `untrusted`, the proxy approves no command, because no client can approve a command."""
    done = proxy.post(endpoint, env={"PROXY_APPROVAL_POLICY": "untrusted"}, ok=False)
    asked = {f.value["id"]: f.value["method"] for f in done.frames if f.sender == "server" and f.kind == "request"}
    assert asked, (
        "With PROXY_APPROVAL_POLICY=untrusted the app-server must request an approval for `rm`, but it requested none: pass the "
        f"policy to the app-server. The status of the answer is {done.status}: {done.shown()}"
    )
    for frame in done.frames:
        if frame.sender == "client" and frame.kind == "response" and frame.value["id"] in asked:
            result = frame.value.get("result")
            decision = result.get("decision") if isinstance(result, dict) else None
            given = decision if isinstance(decision, str) else next(iter(decision or {}), "")
            if given.startswith(APPROVING):
                raise AssertionError(
                    f"The proxy answered {asked[frame.value['id']]} with {given!r}, so that Codex runs the command (`rm`), which "
                    "no user has seen: answer `decline` (`denied` in v1)."
                )


@BOTH
@pytest.mark.model(
    turns=[
        {
            "items": [{"type": "function_call", "name": "shell_command", "arguments": {"command": "ls"}, "call_id": "call_8"}],
            "usage": {"input_tokens": 100, "output_tokens": 10},
        },
        {"items": ["There."], "usage": {"input_tokens": 200, "output_tokens": 20}},
    ]
)
@pytest.mark.spec("usage-of-the-turn", "REAL-49")
def test_usage_of_a_turn_of_two_calls(proxy: Proxy, endpoint: str) -> None:
    """The usage in the answer is the sum of the turn, or that of the last model request, but not that of the first request."""
    usage = usage_of(proxy.post(endpoint))
    must_be_one_of("usage.total_tokens of a turn of two model calls (110 and 220)", usage["total_tokens"], (330, 220))


@BOTH
@pytest.mark.model("Hi.")
@pytest.mark.spec("server-death", "REAL-94")
def test_an_app_server_that_dies_is_replaced(proxy: Proxy, endpoint: str) -> None:
    """If the app-server dies, the proxy starts a new one; a request that comes before the new start also succeeds."""
    script = [{"items": ["Hi."], "times": "always"}]
    done = proxy.post(endpoint, script=script)
    child = int({frame.child for frame in done.frames}.pop())
    with contextlib.suppress(ProcessLookupError):  # a proxy may end its app-server after each request
        os.kill(child, signal.SIGTERM)
    must_say(served_again(proxy, endpoint, script=script), "Hi.")
