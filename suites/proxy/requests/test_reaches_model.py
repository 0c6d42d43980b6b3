"""The texts of the client reach the model completely and with the right role. The cases read the requests that the model gets.

Source: the Chat Completions and the Responses API reference; docs/contract/payloads.md, Chat endpoint, for system messages
of chat.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from suites.proxy.expected import ENDPOINTS, PATHS, WORKS, asking, tool
from suites.proxy.failures import is_refused, must_be_served_with_calls, must_be_served_without, settle, with_optional
from suites.proxy.reached import (
    Called,
    model_bodies,
    must_be_encoded_once,
    must_be_paired,
    must_not_be_the_users,
    must_reach,
    must_reach_as_image,
    strings,
)
from suites.proxy.saying import must_be, must_be_answered, short

pytestmark = [pytest.mark.proxy_profile(WORKS), pytest.mark.model("Hi.")]

#: The source of a case about the messages of a request.
MESSAGES = "OpenAI API reference, Chat Completions: messages; Responses: input"
BOTH = pytest.mark.parametrize("endpoint", ENDPOINTS)
#: Without this variable a proxy may drop system messages of chat (docs/contract/payloads.md, Chat endpoint); with it, it may not.
KEPT = {"PROXY_IGNORE_CLIENT_SYSTEM_PROMPT": "false"}
NORTH = Called("call_North7", "north-quay", "Eleven herons stood there.")
SOUTH = Called("call_South2", "south-gate", "Forty lanterns were lit.")
#: The second part of an output in parts.
MORE = "Two of them slept."
FAILED = Called("call_East5", "east-pier", "Error: ENOENT, there is no such folder.")


def ask(proxy: Proxy, endpoint: str, messages: list[Any], **more: Any) -> Exchange:
    """Send a request with the given messages and a last user message, which identifies the case for the fake model."""
    given = [*messages, {"role": "user", "content": proxy.prompt("And now?")}]
    body = {"messages": given} if endpoint == "chat" else {"input": given}
    return must_be_served_with_calls(proxy, lambda: proxy.post(endpoint, {**body, **more}, env=KEPT))


def path(endpoint: str, number: int) -> str:
    """Return the place of a message in the client's request, for use in a failure message."""
    return f"{'messages' if endpoint == 'chat' else 'input'}[{number}]"


def part(endpoint: str, text: str, kind: str = "input_text") -> Any:
    """Return a text part in the form that an endpoint requires; `kind` is its type in a responses request."""
    return {"type": "text" if endpoint == "chat" else kind, "text": text}


@BOTH
@pytest.mark.parametrize("parts", [False, True], ids=["string", "parts"])
@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.spec(
    "system-reaches-model",
    "PAY-91",
    "HAND-40",
    source=MESSAGES,
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
    """The text of `instructions` reaches the model: alone, with tools, or with a system item, which also reaches the model."""
    system = [{"role": "system", "content": "Never name a ship."}] if beside == "a-system-item" else []
    tools = {"tools": [tool("responses")]} if beside == "tools" else {}
    ask(proxy, "responses", system, instructions="Speak in rhymes of herrings.", **tools)
    must_reach(proxy, ("instructions", "Speak in rhymes of herrings."))
    for item in system:
        must_reach(proxy, ("input[0] (role system)", item["content"]))


@pytest.mark.parametrize(
    ("endpoint", "role"),
    [*((endpoint, role) for endpoint in ENDPOINTS for role in ("system", "developer")), ("responses", "instructions")],
)
@pytest.mark.spec("system-text-keeps-its-role", "HAND-19", "HAND-24", "PAY-91")
def test_a_system_text_is_no_text_of_the_user(proxy: Proxy, endpoint: str, role: str) -> None:
    """System and developer texts and `instructions` reach the model, but never in a message of the user."""
    text = f"Obey the {role} of lighthouses."
    if role == "instructions":
        where, messages, more = role, [], {"instructions": text}
    else:
        where, messages, more = f"{path(endpoint, 0)} (role {role})", [{"role": role, "content": text}], {}
    ask(proxy, endpoint, messages, **more)
    must_reach(proxy, (where, text))
    must_not_be_the_users(proxy, where, text)


@BOTH
@pytest.mark.spec(
    "history-reaches-model",
    "HAND-40",
    source=MESSAGES,
    says="A list of messages comprising the conversation so far",
)
def test_the_conversation_so_far(proxy: Proxy, endpoint: str) -> None:
    """All earlier messages of the user and of the assistant reach the model in order, before the last message."""
    texts = ["The heron flew north.", "It flew to the quay.", "Two parts: this one", "and that one.", "The gate was shut."]
    messages = [
        {"role": "user", "content": texts[0]},
        {"role": "assistant", "content": [part(endpoint, texts[1], "output_text")]},
        {"role": "user", "content": [part(endpoint, texts[2]), part(endpoint, texts[3])]},
        {"role": "user", "content": texts[4]},
    ]
    more = [f"Heron {number} of forty." for number in range(40)]
    messages += [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(more)]
    ask(proxy, endpoint, messages)
    wheres = [path(endpoint, 0), path(endpoint, 1), *(f"{path(endpoint, 2)}.content[{n}]" for n in (0, 1))]
    wheres += [path(endpoint, number) for number in range(3, 44)]
    must_reach(proxy, *zip(wheres, texts + more, strict=True), (f"{path(endpoint, 44)}, the last message", proxy.marker))


@BOTH
@pytest.mark.spec("speakers-reach-model", "HAND-23", "HAND-35", source=MESSAGES, says="The role of the messages author")
def test_who_has_spoken(proxy: Proxy, endpoint: str) -> None:
    """If two conversations differ only in who wrote each message, the requests to the model also differ."""
    texts = ["The heron flew north.", "The gate was shut."]
    asked: list[list[tuple[str, str]]] = []
    for speakers in (("user", "assistant"), ("assistant", "user")):
        before = len(proxy.model_calls()) if asked else 0
        messages = [{"role": role, "content": text} for role, text in zip(speakers, texts, strict=True)]
        ask(proxy, endpoint, [{"role": "user", "content": "Tell me."}, *messages])
        settle(proxy)
        asked.append(strings(model_bodies(proxy)[before]))
    if asked[0] == asked[1]:
        raise AssertionError(
            f"{path(endpoint, 1)} and {path(endpoint, 2)} reach the model in the same way, whether they come from the user or "
            f"from the assistant: {short([text for _, text in asked[0] if texts[0] in text])}. Name the role of each message in "
            "the text, for example [user] and [assistant], or send each message as an item with its role."
        )


@BOTH
@pytest.mark.spec("effort-reaches-model", source="OpenAI API reference", says="reasoning_effort; reasoning: effort")
def test_an_effort_reaches_the_model(proxy: Proxy, endpoint: str) -> None:
    """The effort that the client requests reaches the model, or the proxy refuses the effort."""
    given: dict[str, Any] = {"reasoning_effort": "high"} if endpoint == "chat" else {"reasoning": {"effort": "high"}}
    if not with_optional(proxy, lambda **more: proxy.post(endpoint, more), **given)[1]:
        return
    for body in model_bodies(proxy):
        must_be("reasoning.effort of the request to the model", (body.get("reasoning") or {}).get("effort"), "high")


@BOTH
@pytest.mark.parametrize("parts", [False, True], ids=["string", "parts"])
@pytest.mark.spec("blanks-reach-model", "HAND-22", source=MESSAGES, says="content")
def test_the_blanks_around_a_text(proxy: Proxy, endpoint: str, parts: bool) -> None:
    """The blanks and lines at both ends of a user's text reach the model, because a piece of code or a list depends on them."""
    text = f"\n        return herons  # {proxy.marker}\n\n\t- "
    more = "\n    and one more  \n"
    content: Any = [part(endpoint, text), part(endpoint, more)] if parts else text
    messages = [{"role": "user", "content": content}]
    proxy.post(endpoint, {"messages" if endpoint == "chat" else "input": messages})
    if parts:
        must_reach(proxy, (f"{path(endpoint, 0)}.content[1] (with the blanks and lines at both of its ends)", more))
    must_reach(proxy, (f"{path(endpoint, 0)}.content (with the blanks and lines at both of its ends)", text))


@BOTH
@pytest.mark.spec(
    "tools-not-dropped",
    source="OpenAI API reference, Chat Completions: tools; Responses: tools",
    says="tools: an array of tools the model may call",
)
def test_tools_are_not_dropped(proxy: Proxy, endpoint: str) -> None:
    """The proxy passes the declared tools to the model, or refuses the request; also a proxy that supports no tools."""
    given = {"model": "gpt-5.2", **asking(endpoint, proxy.prompt())}
    # The bytes are sent unchanged: a value with tools would skip the case if the proxy declares no tools.
    data = json.dumps({**given, "tools": [tool(endpoint)]}).encode()
    done = proxy.ask("POST", PATHS[endpoint], data, headers={"Content-Type": "application/json"})
    if is_refused(done, "tool", "tools"):
        must_be_served_without(proxy, endpoint, given, "tools")
        return
    must_be_answered(done, 200, "with tools (or 400, with an error that names `tools`)")
    if not all("getfiletree" in json.dumps(body).lower() for body in model_bodies(proxy)):
        raise AssertionError(
            f"{done.method} {done.path} with tools was answered 200, but the tools did not reach the model: the proxy dropped "
            "them silently, and the client waits for calls that never come. Pass the tools to the model, or refuse the request "
            "with 400 and an error that names `tools`."
        )


@pytest.mark.parametrize("native", ["web_search", "code_interpreter"])
@pytest.mark.spec("built-in-tools", "HAND-17", "HAND-41")
def test_a_built_in_tool_beside_a_function(proxy: Proxy, native: str) -> None:
    """The proxy refuses or omits a tool that is not a function; it never turns it into one, and keeps the other functions."""
    done = proxy.responses({"tools": [{"type": native}, tool("responses")]}, ok=False)
    if 400 <= done.status < 500:
        assert done.json["error"]["message"], "error.message of the answer is empty; it must name the error"
        must_be_served_without(proxy, "responses", {"tools": [tool("responses")]}, f"a tool of type {native}")
        return
    must_be_answered(done, 200, f"with a tool of type {native}")
    for body in model_bodies(proxy):
        message = json.dumps(body, ensure_ascii=False)
        assert "Where to begin" in message, (
            f"the function beside a tool of type {native} is not in the request to the model: {message[:1500]}"
        )
        functions = [each.get("name") for each in body.get("tools") or [] if each.get("type") == "function"]
        assert native not in functions, (
            f"the client's tool of type {native} reached the model as a function of that name, which no program runs: leave it "
            "out, or refuse it with status 400"
        )


def history(endpoint: str, calls: list[Called], outputs: list[Called], parts: bool = False) -> list[Any]:
    """Return messages with a question of the user, parallel calls of the model, and the outputs of these calls."""
    messages: list[Any] = [{"role": "user", "content": "Look around."}]
    made = [(call.id, "getFileTree", f'{{"path":"{call.path}"}}') for call in calls]
    if endpoint == "chat":
        functions = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in made]
        messages.append({"role": "assistant", "content": None, "tool_calls": functions})
    else:
        messages += [{"type": "function_call", "call_id": i, "name": n, "arguments": a} for i, n, a in made]
    for call in outputs:
        message: Any = [part(endpoint, call.output), part(endpoint, MORE)] if parts else call.output
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
    source=MESSAGES,
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
    must_be_encoded_once(proxy, arguments, "path")
    if parts:
        must_reach(proxy, (f"{path(endpoint, 2)} (its second part)", MORE))


@BOTH
@pytest.mark.spec("text-before-call-reaches-model", "HAND-40", source=MESSAGES, says="assistant messages: content, tool_calls")
def test_the_text_before_an_earlier_call(proxy: Proxy, endpoint: str) -> None:
    """If the assistant said something and then called a tool, both reach the model, in this order."""
    text = "First I shall look at the quay."
    messages = history(endpoint, [NORTH], [NORTH])
    if endpoint == "chat":
        messages[1]["content"] = text
    else:
        messages.insert(1, {"role": "assistant", "content": text})
    ask(proxy, endpoint, messages, tools=[tool(endpoint)])
    arguments = place(endpoint, 0 if endpoint == "chat" else 1)[1]
    must_reach(proxy, (f"{path(endpoint, 1)}.content", text), (arguments, NORTH.path))


@BOTH
@pytest.mark.parametrize("order", ["as-called", "the-last-first", "no-user-after-them"])
@pytest.mark.spec(
    "tool-outputs-paired",
    "HAND-40",
    source=MESSAGES,
    says="tool_call_id: Tool call that this message is responding to",
)
def test_the_outputs_of_two_calls(proxy: Proxy, endpoint: str, order: str) -> None:
    """Each output reaches the model with the id of its own call, in any order, also if no message of the user follows them."""
    outputs = [SOUTH, NORTH] if order == "the-last-first" else [NORTH, SOUTH]
    messages = history(endpoint, [NORTH, SOUTH], outputs)
    if order == "no-user-after-them":  # so does each client that runs a tool and wants to know what the model makes of it
        name, output = ("messages", "content") if endpoint == "chat" else ("input", "output")
        messages[0]["content"], messages[-1][output] = proxy.prompt("Look around."), proxy.prompt(SOUTH.output)
        body = {name: messages, "tools": [tool(endpoint)]}
        must_be_served_with_calls(proxy, lambda: proxy.post(endpoint, body, env=KEPT))
    else:
        ask(proxy, endpoint, messages, tools=[tool(endpoint)])
    must_reach(proxy, (place(endpoint, 0)[1], NORTH.path), (place(endpoint, 1)[1], SOUTH.path))
    must_be_paired(proxy, NORTH, SOUTH)


@BOTH
@pytest.mark.parametrize("order", ["as-called", "the-last-first"])
@pytest.mark.spec(
    "tool-error-reaches-model",
    "HAND-40",
    source=MESSAGES,
    says="tool messages: tool_call_id, content; function_call_output: call_id, output",
)
def test_the_error_of_a_tool(proxy: Proxy, endpoint: str, order: str) -> None:
    """An output with an error reaches the model with the id of its call, next to the output of a successful call."""
    outputs = [FAILED, SOUTH] if order == "as-called" else [SOUTH, FAILED]
    ask(proxy, endpoint, history(endpoint, [FAILED, SOUTH], outputs), tools=[tool(endpoint)])
    must_be_paired(proxy, FAILED, SOUTH)


#: Two PNGs of one pixel each. The real Codex sends a PNG unchanged, and converts a GIF to a PNG.
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DOT = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP476AAAAOhAWARCVPIAAAAAElFTkSuQmCC"


@BOTH
@pytest.mark.spec("image-reaches-model", "HAND-40", source=MESSAGES, says="image_url; input_image")
def test_two_images(proxy: Proxy, endpoint: str) -> None:
    """An image between texts, and one that is a whole message, reach the model as images; texts and images keep their order."""
    images = [
        {"type": "image_url", "image_url": {"url": url}} if endpoint == "chat" else {"type": "input_image", "image_url": url}
        for url in (PIXEL, DOT)
    ]
    content = [part(endpoint, "What is on this picture?"), images[0], part(endpoint, "Look at its corner.")]
    ask(proxy, endpoint, [{"role": "user", "content": content}, {"role": "user", "content": [images[1]]}])
    wheres = [*(f"{path(endpoint, 0)}.content[{number}]" for number in range(3)), f"{path(endpoint, 1)}.content[0]"]
    must_reach(proxy, (wheres[0], "this picture?"), (wheres[2], "its corner."))
    for at, url in ((1, PIXEL), (3, DOT)):
        must_reach_as_image(proxy, url, f"{wheres[at]} (an image) of the client's request")
    must_reach(proxy, *zip(wheres, ("this picture?", PIXEL, "its corner.", DOT), strict=True))


@pytest.mark.spec(
    "image-of-output-reaches-model",
    "HAND-40",
    source="OpenAI API reference, Responses: input",
    says="function_call_output: output, an array of text, image or file content",
)
def test_an_image_in_the_output_of_a_tool(proxy: Proxy) -> None:
    """An image in the output of a tool reaches the model with the text next to it, or the proxy refuses the image."""
    question = {"role": "user", "content": proxy.prompt("And now?")}
    messages = history("responses", [NORTH], [NORTH], parts=True)
    messages[-1]["output"].append({"type": "input_image", "image_url": PIXEL})
    done = proxy.responses({"input": [*messages, question]}, ok=False)
    if is_refused(done, "image", "images", "input_image", "output", "function_call", "function_call_output"):
        del messages[-1]["output"][-1]
        must_be_served_with_calls(proxy, lambda: proxy.responses({"input": [*messages, question]}))
        return
    must_be_answered(done, 200, "with an image in the output of a tool")
    must_reach(proxy, ("input[2].output[0]", NORTH.output))
    must_reach_as_image(proxy, PIXEL, "input[2].output[2] (an image in the output of a tool; the proxy did not refuse it)")


@pytest.mark.parametrize("shape", ["flat", "nested"])
@pytest.mark.spec(
    "tool-shapes",
    "REAL-46",
    source="OpenAI API reference, Responses: tools; Chat Completions: tools",
    says="{type, name, parameters}; {type, function: {name, parameters}}",
)
def test_the_shapes_of_a_tool(proxy: Proxy, shape: str) -> None:
    """A tool of a responses request has a flat form, but clients that were written for chat send the nested form.

    The proxy passes tools in both forms to the model, or refuses them.
    """
    declared = tool("responses" if shape == "flat" else "chat")
    done = proxy.responses({"tools": [declared]}, ok=False)
    if shape == "nested" and done.status == 400:
        must_be_served_without(proxy, "responses", {"tools": [tool("responses")]}, "a nested tool")
        return
    if done.status != 200:
        raise AssertionError(
            f"POST /v1/responses with a {shape} tool must be answered 200, but was answered {done.answered}: {done.shown()}"
        )
    for body in model_bodies(proxy):
        message = json.dumps(body, ensure_ascii=False)
        for word, what in (("getFileTree", "the name"), ("Where to begin", "the schema of the parameters")):
            if word not in message:
                raise AssertionError(
                    f"{what} of a {shape} tool ({word!r}) is nowhere in the request to the model: {message[:1500]}"
                )
