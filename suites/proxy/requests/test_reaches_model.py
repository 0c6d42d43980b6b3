"""The client's texts reach the model complete and in the right role. The cases read the requests that the model gets.

Source: the Chat Completions and the Responses API reference; docs/contract/payloads.md, Chat endpoint, for system messages
of chat.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from suites.proxy.expected import ENDPOINTS, WORKS, tool
from suites.proxy.reached import Called, model_bodies, must_be_paired, must_reach, shown, strings

pytestmark = [pytest.mark.proxy_profile(WORKS), pytest.mark.model("Hi.")]

BOTH = pytest.mark.parametrize("endpoint", ENDPOINTS)
#: Without this variable a proxy may drop system messages of chat (docs/contract/payloads.md, Chat endpoint); with it, it may not.
KEPT = {"PROXY_IGNORE_CLIENT_SYSTEM_PROMPT": "false"}
NORTH = Called("call_North7", "north-quay", "Eleven herons stood there.")
SOUTH = Called("call_South2", "south-gate", "Forty lanterns were lit.")
FAILED = Called("call_East5", "east-pier", "Error: ENOENT, there is no such folder.")


def ask(proxy: Proxy, endpoint: str, messages: list[Any], **more: Any) -> Exchange:
    """Send a request with these messages and a last user message, which identifies the case for the model."""
    given = [*messages, {"role": "user", "content": proxy.prompt("And now?")}]
    body = {"messages": given} if endpoint == "chat" else {"input": given}
    return proxy.post(endpoint, {**body, **more}, env=KEPT)


def path(endpoint: str, number: int) -> str:
    """Return the place of a message in the client's request, for a failure message."""
    return f"{'messages' if endpoint == 'chat' else 'input'}[{number}]"


def part(endpoint: str, text: str) -> Any:
    """Return a text part in the form of this endpoint."""
    return {"type": "text" if endpoint == "chat" else "input_text", "text": text}


@BOTH
@pytest.mark.parametrize("parts", [False, True], ids=["string", "parts"])
@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.spec(
    "system-reaches-model",
    "PAY-91",
    "HAND-40",
    source="OpenAI API reference, Chat Completions: messages; Responses: input",
    says="only sent ... when `PROXY_IGNORE_CLIENT_SYSTEM_PROMPT=false`",
)
def test_system_and_developer_texts(proxy: Proxy, endpoint: str, role: str, parts: bool) -> None:
    """System and developer messages reach the model; on chat this needs PROXY_IGNORE_CLIENT_SYSTEM_PROMPT=false."""
    text = f"Answer as a {role} of pirates would."
    ask(proxy, endpoint, [{"role": role, "content": [part(endpoint, text)] if parts else text}])
    must_reach(proxy, (f"{path(endpoint, 0)} (role {role})", text))


@pytest.mark.parametrize("beside", ["nothing", "a-system-item", "tools"])
@pytest.mark.spec(
    "instructions-reach-model",
    "HAND-40",
    source="OpenAI API reference, Responses: instructions",
    says="A system (or developer) message",
)
def test_instructions(proxy: Proxy, beside: str) -> None:
    """`instructions` reach the model, alone, with tools or with a system item, which reaches the model too."""
    system = [{"role": "system", "content": "Never name a ship."}] if beside == "a-system-item" else []
    tools = {"tools": [tool("responses")]} if beside == "tools" else {}
    ask(proxy, "responses", system, instructions="Speak in rhymes of herrings.", **tools)
    must_reach(proxy, ("instructions", "Speak in rhymes of herrings."))
    for item in system:
        must_reach(proxy, ("input[0] (role system)", item["content"]))


@BOTH
@pytest.mark.spec(
    "history-reaches-model",
    "HAND-40",
    source="OpenAI API reference, Chat Completions: messages; Responses: input",
    says="A list of messages comprising the conversation so far",
)
def test_the_conversation_so_far(proxy: Proxy, endpoint: str) -> None:
    """All messages of the user and of the assistant reach the model in order, then the last message."""
    texts = ["The heron flew north.", "It flew to the quay.", "Two parts: this one", "and that one.", "The gate was shut."]
    messages = [
        {"role": "user", "content": texts[0]},
        {"role": "assistant", "content": texts[1]},
        {"role": "user", "content": [part(endpoint, texts[2]), part(endpoint, texts[3])]},
        {"role": "user", "content": texts[4]},
    ]
    ask(proxy, endpoint, messages)
    wheres = [path(endpoint, 0), path(endpoint, 1), *(f"{path(endpoint, 2)}.content[{n}]" for n in (0, 1)), path(endpoint, 3)]
    must_reach(proxy, *zip(wheres, texts, strict=True), (f"{path(endpoint, 4)}, the last message", proxy.marker))


def history(endpoint: str, calls: list[Called], outputs: list[Called], parts: bool = False) -> list[Any]:
    """Return a question of the user, parallel calls of the model, and their outputs."""
    messages: list[Any] = [{"role": "user", "content": "Look around."}]
    made = [(call.id, "getFileTree", f'{{"path":"{call.path}"}}') for call in calls]
    if endpoint == "chat":
        functions = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in made]
        messages.append({"role": "assistant", "content": None, "tool_calls": functions})
    else:
        messages += [{"type": "function_call", "call_id": i, "name": n, "arguments": a} for i, n, a in made]
    for call in outputs:
        message: Any = [part(endpoint, call.output)] if parts else call.output
        if endpoint == "chat":
            messages.append({"role": "tool", "tool_call_id": call.id, "content": message})
        else:
            messages.append({"type": "function_call_output", "call_id": call.id, "output": message})
    return messages


def place(endpoint: str, number: int) -> tuple[str, str]:
    """Return the places of a call's name and of its arguments in the client's request."""
    if endpoint == "chat":
        where = f"messages[1].tool_calls[{number}].function"
        return f"{where}.name", f"{where}.arguments"
    return f"input[{1 + number}].name", f"input[{1 + number}].arguments"


@BOTH
@pytest.mark.parametrize("declared", [True, False], ids=["tools", "no-tools"])
@pytest.mark.parametrize("parts", [False, True], ids=["string", "parts"])
@pytest.mark.spec(
    "tool-output-reaches-model",
    "HAND-40",
    source="OpenAI API reference, Chat Completions: messages; Responses: input",
    says="tool messages: tool_call_id, content; function_call_output: call_id, output",
)
def test_a_tools_output(proxy: Proxy, endpoint: str, parts: bool, declared: bool) -> None:
    """An earlier call reaches the model with its name, its arguments and its output, with and without tools in the request."""
    tools = {"tools": [tool(endpoint)]} if declared else {}
    ask(proxy, endpoint, history(endpoint, [NORTH], [NORTH], parts), **tools)
    name, arguments = place(endpoint, 0)
    must_reach(proxy, (name, "getFileTree"))
    must_reach(proxy, (arguments, NORTH.path), (path(endpoint, 2), NORTH.output))
    must_be_paired(proxy, NORTH)


@BOTH
@pytest.mark.parametrize("order", ["as-called", "the-last-first"])
@pytest.mark.spec(
    "tool-outputs-paired",
    "HAND-40",
    source="OpenAI API reference, Chat Completions: messages; Responses: input",
    says="tool_call_id: Tool call that this message is responding to",
)
def test_the_outputs_of_two_calls(proxy: Proxy, endpoint: str, order: str) -> None:
    """Each output reaches the model under the id of its own call, in both orders of the outputs."""
    outputs = [NORTH, SOUTH] if order == "as-called" else [SOUTH, NORTH]
    ask(proxy, endpoint, history(endpoint, [NORTH, SOUTH], outputs), tools=[tool(endpoint)])
    must_reach(proxy, (place(endpoint, 0)[1], NORTH.path), (place(endpoint, 1)[1], SOUTH.path))
    must_be_paired(proxy, NORTH, SOUTH)


@BOTH
@pytest.mark.parametrize("order", ["as-called", "the-last-first"])
@pytest.mark.spec(
    "tool-error-reaches-model",
    "HAND-40",
    source="OpenAI API reference, Chat Completions: messages; Responses: input",
    says="tool messages: tool_call_id, content; function_call_output: call_id, output",
)
def test_the_error_of_a_tool(proxy: Proxy, endpoint: str, order: str) -> None:
    """An output with an error reaches the model under the id of its call, next to the output of a successful call."""
    outputs = [FAILED, SOUTH] if order == "as-called" else [SOUTH, FAILED]
    ask(proxy, endpoint, history(endpoint, [FAILED, SOUTH], outputs), tools=[tool(endpoint)])
    must_be_paired(proxy, FAILED, SOUTH)


#: The smallest PNG: one pixel.
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@BOTH
@pytest.mark.spec(
    "image-reaches-model",
    "HAND-40",
    source="OpenAI API reference, Chat Completions: messages; Responses: input",
    says="image_url; input_image",
)
def test_an_image(proxy: Proxy, endpoint: str) -> None:
    """An image between two texts reaches the model as an image, with its data, and the texts reach it too."""
    image = (
        {"type": "image_url", "image_url": {"url": PIXEL}} if endpoint == "chat" else {"type": "input_image", "image_url": PIXEL}
    )
    content = [part(endpoint, "What is on this picture?"), image, part(endpoint, "Look at its corner.")]
    ask(proxy, endpoint, [{"role": "user", "content": content}])
    texts = [(f"{path(endpoint, 0)}.content[0]", "this picture?"), (f"{path(endpoint, 0)}.content[2]", "its corner.")]
    must_reach(proxy, *texts)
    for number, body in enumerate(model_bodies(proxy), 1):
        if not any(PIXEL in text for _, text in strings(body)):
            raise AssertionError(
                f"{path(endpoint, 0)}.content[1] (an image) of the client's request did not reach the model. "
                f"{shown(body, number)}"
            )


@pytest.mark.parametrize("shape", ["flat", "nested"])
@pytest.mark.spec(
    "tool-shapes",
    "REAL-46",
    source="OpenAI API reference, Responses: tools; Chat Completions: tools",
    says="{type, name, parameters}; {type, function: {name, parameters}}",
)
def test_the_shapes_of_a_tool(proxy: Proxy, shape: str) -> None:
    """A response's tool is flat; clients that were written for chats send it nested. Both reach the model, or are refused."""
    declared = tool("responses" if shape == "flat" else "chat")
    done = proxy.responses({"tools": [declared]}, ok=False)
    if shape == "nested" and done.status == 400:
        return
    if done.status != 200:
        raise AssertionError(
            f"POST /v1/responses with a {shape} tool must be answered 200, but was answered {done.answered}: {done.body[:300]!r}"
        )
    for body in model_bodies(proxy):
        message = json.dumps(body, ensure_ascii=False)
        for word, what in (("getFileTree", "the name"), ("Where to begin", "the schema of the parameters")):
            if word not in message:
                raise AssertionError(
                    f"{what} of a {shape} tool ({word!r}) is nowhere in the request to the model: {message[:1500]}"
                )
