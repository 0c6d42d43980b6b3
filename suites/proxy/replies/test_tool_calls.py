"""Tool calls that a model writes as text become real calls, and the text for the client contains no markup of calls.

Source: docs/contract/payloads.md, Full developer instructions (the form of a call, and common mistakes of models);
docs/contract/handoff.md, Output mode selection. The texts are the public vectors (docs/tool-call-vectors.md).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from codex_replay.plugin.proxy.vectors import Vector, load_vectors
from suites.proxy.answers import read
from suites.proxy.expected import AS_SPECIFIED, ENDPOINTS, IN_TEXT, NOTE, WORKS, asking, each_way, native, tool
from suites.proxy.failures import must_come_of_the_text, settle, with_optional
from suites.proxy.found_calls import must_fit, squeezed
from suites.proxy.reached import model_bodies, strings
from suites.proxy.saying import must_be, short

pytestmark = pytest.mark.proxy_profile(WORKS, AS_SPECIFIED)

VECTORS = {vector.id: vector for vector in load_vectors()}
SMALL = [vector for vector in VECTORS.values() if len(vector.text) < 10_000 and vector.cuts is None]
#: The vectors that define their own chunks.
CUT = [vector for vector in VECTORS.values() if vector.cuts is not None]
CALLING = [vector for vector in SMALL if vector.outcomes[0].calls and len(vector.outcomes) == 1]


def model_item(vector: Vector, size: int) -> dict[str, Any]:
    """Return the model's item for a test vector, in chunks of the given size."""
    return {"type": "text", "text": vector.text, "deltas": vector.chunks(size)}


def cases(vectors: list[Vector], sizes: list[int]) -> list[Any]:
    """Return a case for each vector and chunk size, with the model's script."""
    return [
        pytest.param(vector.id, id=f"{vector.id}-{size or 'whole'}", marks=pytest.mark.model(model_item(vector, size)))
        for vector in vectors
        for size in sizes
    ]


def on(endpoint: str, params: list[Any]) -> list[Any]:
    """Add the endpoint to the values of each case."""
    return [pytest.param(endpoint, *each.values, id=f"{endpoint}-{each.id}", marks=each.marks) for each in params]


def each_endpoint(params: list[Any]) -> list[Any]:
    """Return a decorator that runs each case on both endpoints."""
    return [case for endpoint in ENDPOINTS for case in on(endpoint, params)]


def ask(proxy: Proxy, endpoint: str, **more: Any) -> Exchange:
    """Send a request with the tools of the vectors."""
    tools = [tool(endpoint), tool(endpoint, "saveNote", NOTE)]
    headers = more.pop("headers", None)
    script = more.pop("script", None)
    return proxy.post(endpoint, {"tools": tools, **more}, ok=False, headers=headers, script=script)


def judge(proxy: Proxy, done: Exchange, vector: Vector) -> None:
    """Check that an answer has one of the outcomes that a vector allows."""
    __tracebackhide__ = True
    why = f"{vector.why} ({', '.join(vector.statements)})"
    failed = done.status >= 400 or (done.is_stream and any(_is_error(event.value) for event in done.events))
    if failed:
        assert any(outcome.error for outcome in vector.outcomes), (
            f"{done.method} {done.path} must succeed, but was answered {done.answered}"
            f"{' with an error in the stream' if done.status < 400 else ''}: {done.shown()} {why}"
        )
        must_come_of_the_text(proxy, done)
        return
    answer = read(done)
    must_fit(answer, vector)
    for call, verbatim in zip(answer.calls, vector.verbatim, strict=False):
        if verbatim is not None:
            must_be(
                f"The arguments of {call.name} (unchanged, because decoding and encoding them would lose information)",
                call.arguments,
                verbatim,
            )


def _is_error(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and ("error" in value or value.get("type") in ("error", "response.failed"))
        and not (isinstance(value.get("error"), type(None)) and "error" in value and value.get("type") != "response.failed")
    )


@IN_TEXT
@pytest.mark.parametrize(
    ("endpoint", "vector"), [*on("chat", cases(SMALL, [1])), *on("responses", cases(SMALL, [7])), *each_endpoint(cases(CUT, [0]))]
)
@pytest.mark.spec("tool-calls-stream", "PAY-98", "PAY-99", "PAY-100")
def test_streamed(proxy: Proxy, endpoint: str, vector: str) -> None:
    """The client gets the same calls and the same text for all chunk sizes of the model's text."""
    judge(proxy, ask(proxy, endpoint, stream=True), VECTORS[vector])


@IN_TEXT
@pytest.mark.parametrize("vector", cases(SMALL, [0]))
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("tool-calls-whole", "PAY-98", "PAY-99", "PAY-100")
def test_whole(proxy: Proxy, endpoint: str, vector: str) -> None:
    """An answer without a stream has the same calls and the same text as a streamed answer."""
    judge(proxy, ask(proxy, endpoint, stream=False), VECTORS[vector])


@IN_TEXT
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.proxy_profile(WORKS)
@pytest.mark.spec("tool-calls-large", "PAY-98")
def test_a_megabyte_of_arguments(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The client gets a megabyte of arguments unchanged."""
    vector = VECTORS["large"]
    script = [{"items": [model_item(vector, 65536)], "times": "always"}]
    judge(proxy, ask(proxy, endpoint, stream=stream, script=script), vector)


@each_way([model_item(VECTORS["two-the-same"], 7)], [native(), native(call_id="call_10")])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("tool-calls-ids", "PAY-98")
def test_every_call_has_an_id_of_its_own(proxy: Proxy, endpoint: str, stream: bool, way: str) -> None:
    """If the model makes the same call twice, the two calls have different ids."""
    done = ask(proxy, endpoint, stream=stream)
    ids = [call.id for call in read(done).calls]
    asked = [f for f in done.frames if f.sender == "server" and f.kind == "request" and f.value["method"] == "item/tool/call"]
    if way == "native-call" and len(ids) == len(asked) == 1:
        raise AssertionError(
            "The model made two calls (native-call), but the client got one. The app-server requests the outputs one after the "
            "other: item/tool/call for the second call comes after the reply to the first. Reply to each request, or take the "
            "calls from rawResponseItem/completed (thread/start with experimentalRawEvents)."
        )
    must_be(f"The number of calls that the client gets after two calls of the model ({way})", len(ids), 2)
    name = "id" if endpoint == "chat" else "call_id"
    assert all(ids), f"each call must have a {name}; got {ids}"
    assert ids[0] != ids[1], f"two calls have the same {name}, {ids[0]!r}; each must have a different one"


def _twice(first: Any, second: Any) -> pytest.MarkDecorator:
    """Return the model's replies to the prompts `First.` and `Second.`"""
    prompts = {"First.": first, "Second.": second}
    return pytest.mark.model(turns=[{"match": word, "items": [item]} for word, item in prompts.items()])


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("call-in-text", marks=[IN_TEXT, _twice(*[model_item(VECTORS["one"], 7)] * 2)]),
        pytest.param(
            "native-call",
            marks=[
                pytest.mark.needs("native-tools"),
                _twice(native(call_id="call_21"), native(call_id="call_22")),
                pytest.mark.proxy_profile(WORKS),
            ],
        ),
    ],
)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("tool-calls-ids-of-two-answers", "PAY-98")
def test_calls_of_two_answers_have_different_ids(proxy: Proxy, endpoint: str, way: str) -> None:
    """A later answer does not use the id of an earlier call again; otherwise an output could belong to two calls."""
    ids = []
    for word in ("First.", "Second."):
        ids += [call.id for call in read(ask(proxy, endpoint, **asking(endpoint, proxy.prompt(word)))).calls]
        settle(proxy)
    must_be(f"The number of calls in two answers with one call each ({way})", len(ids), 2)
    name = "id" if endpoint == "chat" else "call_id"
    if ids[0] == ids[1]:
        raise AssertionError(
            f"Two answers ({way}) have calls with the same {name}, {ids[0]!r}: in a conversation with both calls, an output "
            "could belong to either call. Give each call an id that is used once, across requests."
        )


@each_way([model_item(VECTORS["one"], 7)], [native()])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.spec("tool-calls-finish", "PAY-98")
def test_finish_reason(proxy: Proxy, stream: bool, way: str) -> None:
    """On chat, an answer with calls has the finish_reason `tool_calls`, because a client runs calls only then."""
    must_be(f"finish_reason of an answer that calls a tool ({way})", read(ask(proxy, "chat", stream=stream)).ended, "tool_calls")


@IN_TEXT
@pytest.mark.model(model_item(VECTORS["one"], 7))
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("tool-calls-undeclared", "PAY-101")
def test_no_tools_no_calls(proxy: Proxy, endpoint: str) -> None:
    """If the request has no tools, the answer has no calls."""
    must_be("The calls that a client without tools gets", read(proxy.post(endpoint)).calls, [])


@each_way([model_item(VECTORS["one"], 7)], [native()])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec(
    "tool-choice-none",
    source="OpenAI API reference, Chat Completions: tool_choice; Responses: tool_choice",
    says="`none` means the model will not call any tool and instead generates a message",
)
def test_tool_choice_none(proxy: Proxy, endpoint: str, stream: bool, way: str) -> None:
    """With `tool_choice: "none"`, the answer has no calls, although the model makes one; a proxy may refuse tool_choice."""
    body = {"tools": [tool(endpoint)], "stream": stream}
    done, kept = with_optional(proxy, lambda **more: proxy.post(endpoint, {**body, **more}), tool_choice="none")
    if kept and (names := [call.name for call in read(done).calls]):
        raise AssertionError(
            f'The client forbade calls (`tool_choice: "none"`), but its answer has calls of {names} ({way}): the client did not '
            "expect calls and does not run them. Do not look for calls in the text, and do not pass on native calls."
        )


@pytest.mark.parametrize("choice", ["required", "named"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.model("Hi.")
@pytest.mark.proxy_profile(WORKS)
@pytest.mark.spec(
    "tool-choice-reaches-model",
    "PAY-35",
    "HAND-26",
    source="OpenAI API reference, Chat Completions: tool_choice; Responses: tool_choice",
    says="`required` means the model must call one or more tools",
)
def test_a_tool_choice_reaches_the_model(proxy: Proxy, endpoint: str, choice: str) -> None:
    """A tool choice changes the request to the model, or the proxy refuses it with an error that names the member."""
    function = {"name": "saveNote"}
    named = {"type": "function", **({"function": function} if endpoint == "chat" else function)}
    body = {"tools": [tool(endpoint), tool(endpoint, "saveNote", NOTE)]}
    proxy.post(endpoint, body)
    settle(proxy)
    plain = model_bodies(proxy)
    wanted = {"tool_choice": named if choice == "named" else choice}
    if not with_optional(proxy, lambda **more: proxy.post(endpoint, {**body, **more}), **wanted)[1]:
        return
    settle(proxy)
    before, after = ([strings(each), each.get("tools"), each.get("tool_choice")] for each in (plain[-1], model_bodies(proxy)[-1]))
    if before == after:
        raise AssertionError(
            f"tool_choice {short(wanted['tool_choice'])} does not reach the model: its request is the same as without a tool "
            "choice, so that the model may answer with a text, for which the client does not wait. Tell the model in the "
            "instructions which tool it must call, or refuse tool_choice with status 400."
        )


@pytest.mark.needs("text-tools", "tool_call", "obsidian-xml")
@pytest.mark.parametrize(("by", "stream"), [("header", True), ("environment", False)], ids=["header-stream", "environment-whole"])
@pytest.mark.parametrize("vector", cases(CALLING, [7]))
@pytest.mark.spec("tool-calls-xml", "HAND-11", "HAND-12")
def test_obsidian_xml(proxy: Proxy, vector: str, stream: bool, by: str) -> None:
    """In the mode obsidian-xml each call is one well-formed block of the text, in the exact form of the instructions."""
    body = {"tools": [tool("responses"), tool("responses", "saveNote", NOTE)], "stream": stream}
    if by == "header":
        done = proxy.responses(body, headers={"x-proxy-output-mode": "obsidian-xml"})
    else:
        done = proxy.responses(body, env={"PROXY_RESPONSES_OUTPUT_MODE": "obsidian-xml"})
    answer = read(done)
    must_be("The calls outside the text of an answer in obsidian-xml", answer.calls, [])
    calls, text = _blocks(answer.text)
    wanted = VECTORS[vector].outcomes[0]
    must_be("The calls in the text of the answer", calls, list(wanted.calls))
    must_be("The text without the calls", squeezed(text), squeezed(wanted.output))


@pytest.mark.needs("text-tools", "tool_call", "obsidian-xml")
@pytest.mark.model(model_item(VECTORS["one"], 7))
@pytest.mark.spec("tool-calls-header-wins", "HAND-13")
def test_the_header_wins(proxy: Proxy) -> None:
    """The header for the output mode overrides the environment variable for the output mode."""
    body = {"tools": [tool("responses")]}
    env = {"PROXY_RESPONSES_OUTPUT_MODE": "obsidian-xml"}
    done = proxy.responses(body, env=env, headers={"x-proxy-output-mode": "openai-json"})
    must_be(
        "The calls of an answer with `x-proxy-output-mode: openai-json`",
        [call.name for call in read(done).calls],
        ["getFileTree"],
    )


def _blocks(text: str) -> tuple[list[tuple[str, Any]], str]:
    """Remove the calls in their exact form from a text; return the calls and the rest."""
    calls, rest = [], ""
    while (at := text.find("<tool_call>")) >= 0:
        rest += text[:at]
        text = text[at + len("<tool_call>") :].lstrip()
        try:
            value, end = json.JSONDecoder().raw_decode(text)
        except ValueError:
            raise AssertionError(f"<tool_call> must be followed by a JSON object, not by {text[:200]!r}") from None
        must_be("The keys of the object in <tool_call>", sorted(value), ["arguments", "name"])
        message = value["arguments"]
        assert isinstance(message, str), f'the "arguments" field must be a JSON string, not {message!r}'
        text = text[end:].lstrip()
        assert text.startswith("</tool_call>"), f"a call must end with its closing tag, not {text[:30]!r}"
        text = text.removeprefix("</tool_call>")
        calls.append((value["name"], json.loads(value["arguments"])))
    return calls, rest + text
