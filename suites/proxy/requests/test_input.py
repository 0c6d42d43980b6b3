"""How a proxy turns the input of a request into items.

Source: docs/contract/handoff.md, Mapping overview, and Abnormalities 2 (flattening).
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from suites.proxy.expected import AS_SPECIFIED, ENDPOINTS, prompt_texts, texts
from suites.proxy.instructions import sent
from suites.proxy.saying import must_be, must_be_one_of, must_have, must_lack, only

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ODD = 'a\tb «ü» \u2028 \U0001f600 \\ "q" </tool_call> [assistant] x\r\nlast'


def both(done: Exchange) -> list[dict[str, Any]]:
    """Return the payloads of the proxy that have `items`."""
    return [done.params("sendUserTurn"), done.params("sendUserMessage")]


def conversation(proxy: Proxy, endpoint: str, *said: tuple[str, Any]) -> Exchange:
    """Send a request with the given messages and a last user message, which identifies the case for the fake model."""
    messages = [{"role": role, "content": content} for role, content in said] + [
        {"role": "user", "content": proxy.prompt("Last")}
    ]
    return proxy.post(endpoint, {"messages": messages} if endpoint == "chat" else {"input": messages})


@pytest.mark.spec("input-string", "HAND-18", "HAND-22")
def test_string(proxy: Proxy) -> None:
    """A string becomes one text item with all characters of the string, and at most a role before them."""
    message = f"  Just  this\n- and that {proxy.prompt()}\n "
    wanted = tuple([{"type": "text", "data": {"text": text}}] for text in prompt_texts("responses", message))
    for params in both(proxy.responses({"input": message})):
        must_be_one_of("`items`", params["items"], wanted)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("input-odd", "HAND-22")
def test_every_character_arrives(proxy: Proxy, endpoint: str) -> None:
    """The items have every character of a prompt unchanged."""
    for params in both(conversation(proxy, endpoint, ("user", ODD))):
        must_have("The text of `items`", texts(params), ODD)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("input-roles", "HAND-23", "HAND-35")
def test_roles(proxy: Proxy, endpoint: str) -> None:
    """Each message becomes a line that begins with the role of the message; the order of the conversation stays."""
    done = conversation(proxy, endpoint, ("user", "Where is it?"), ("assistant", "Over there."), ("user", "Thanks."))
    for params in both(done):
        lines = texts(params).splitlines()
        wanted = ["[user] Where is it?", "[assistant] Over there.", "[user] Thanks.", f"[user] {proxy.prompt('Last')}"]
        must_be(
            f"The lines of `items` that are messages of the conversation (all lines: {lines})",
            [line for line in lines if line in wanted],
            wanted,
        )


@pytest.mark.parametrize("kind", ["input_text", "text"])
@pytest.mark.spec("input-parts", "HAND-23")
def test_parts(proxy: Proxy, kind: str) -> None:
    """The items have all text parts of a message, in order."""
    parts = [{"type": kind, "text": "part one"}, {"type": kind, "text": f"part two {proxy.prompt()}"}]
    for params in both(proxy.responses({"input": [{"type": "message", "role": "user", "content": parts}]})):
        text = texts(params)
        must_have("The text of `items`", text, "[user]")
        must_have("The text of `items`", text, "part one", "part two")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("input-image", "HAND-23", "HAND-39")
def test_image(proxy: Proxy, endpoint: str) -> None:
    """An image becomes a separate item with an unchanged URL, after a line with the role of its message."""
    if endpoint == "chat":
        parts: list[Any] = [{"type": "text", "text": "Look: "}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    else:
        parts = [{"type": "input_text", "text": "Look: "}, {"type": "input_image", "image_url": PIXEL}]
    for params in both(conversation(proxy, endpoint, ("user", parts))):
        kinds = [item["type"] for item in params["items"]]
        must_be("The number of images among `items`", kinds.count("image"), 1)
        at = kinds.index("image")
        image = params["items"][at]
        urls = (image["data"].get("image_url"), image["data"].get("imageUrl"), image["data"].get("url"))
        assert PIXEL in urls, f"data.image_url (imageUrl, url) of the image must be {PIXEL!r}, not {urls}"
        before = [item["data"]["text"] for item in params["items"][:at] if item["type"] == "text"]
        must_have("The text of the items before the image", "\n".join(before), "[user]")
        must_have("The text of the items after the image", texts({"items": params["items"][at + 1 :]}), proxy.prompt("Last"))


@pytest.mark.spec("input-image-alone", "HAND-39")
def test_image_alone(proxy: Proxy) -> None:
    """If a message has only an image, the line with its role still comes before the image."""
    items = [
        {"role": "user", "content": proxy.prompt("First")},
        {"role": "user", "content": [{"type": "input_image", "image_url": PIXEL}]},
    ]
    for params in both(proxy.responses({"input": items})):
        at = [item["type"] for item in params["items"]].index("image")
        lines = texts({"items": params["items"][:at]}).splitlines()
        must_be("The last line before the image", lines[-1].strip() if lines else "", "[user]")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("input-images", "HAND-23", "HAND-39")
def test_images_of_one_message(proxy: Proxy, endpoint: str) -> None:
    """Each image of a message becomes a separate item, in the order of the parts."""
    urls = [PIXEL, "https://images.invalid/two.png", PIXEL]
    if endpoint == "chat":
        parts: list[Any] = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    else:
        parts = [{"type": "input_image", "image_url": url} for url in urls]
    text = {"type": "text" if endpoint == "chat" else "input_text", "text": "Between."}
    for params in both(conversation(proxy, endpoint, ("user", [parts[0], text, *parts[1:]]))):
        images = [item["data"] for item in params["items"] if item["type"] == "image"]
        found = [data.get("image_url") or data.get("imageUrl") or data.get("url") for data in images]
        must_be("The URLs of the images among `items`", found, urls)
        must_have("The text of `items`", texts(params), "Between.")


@pytest.mark.spec("input-function-call", "HAND-36")
def test_function_call(proxy: Proxy) -> None:
    """A call of an earlier turn becomes a line of text with its name and its arguments."""
    call = {"type": "function_call", "call_id": "call_77", "name": "getFileTree", "arguments": '{"path":"a/b"}'}
    output = {"type": "function_call_output", "call_id": "call_77", "output": "three files"}
    items = [{"role": "user", "content": "List."}, call, output, {"role": "user", "content": proxy.prompt("And now?")}]
    for params in both(proxy.responses({"input": items})):
        must_be("The types of `items`", {item["type"] for item in params["items"]}, {"text"})
        lines = texts(params).splitlines()
        calls = [line for line in lines if line.startswith("[function_call")]
        assert any("getFileTree" in line for line in calls), (
            f"expected a line of `items` that begins with [function_call and names getFileTree, got {lines}"
        )
        must_have("The text of `items`", texts(params), "a/b")
        if twice := [line for line in calls if '{\\"path\\"' in line]:
            raise AssertionError(
                f"The arguments of a call are a JSON text already, but the proxy encoded them once more: {twice[0]!r}. Write the "
                "client's `arguments` unchanged behind the head of the line."
            )
        must_have("The text of `items`", texts(params), "getFileTree", "three files", "And now?")


@pytest.mark.parametrize("kind", ["function_call_output", "tool_output"])
@pytest.mark.spec("input-tool-output", "HAND-37")
def test_tool_output(proxy: Proxy, kind: str) -> None:
    """The output of a call becomes text, whatever the type of the output is."""
    items = [{"type": kind, "call_id": "call_77", "output": "three files"}, {"role": "user", "content": proxy.prompt()}]
    for params in both(proxy.responses({"input": items})):
        must_be("The types of `items`", [item["type"] for item in params["items"]], ["text"])
        lines = [line for line in texts(params).split("\n") if "three files" in line]
        line = only("line with the output", lines, texts(params).split("\n"))
        head, _, message = line.partition("] ")
        assert re.match(r"\[(tool|function_call_output)", head), f"the line of an output must begin with its kind: {line!r}"
        must_be("The text after the kind of the output", message, "three files")
        must_be("The call ids that the line names, if any,", set(re.findall(r"call_\d+", line)) - {"call_77"}, set())


@pytest.mark.parametrize("kind", ["function_call_output", "tool_output"])
@pytest.mark.spec("input-tool-output-parts", "HAND-37")
def test_tool_output_of_parts(proxy: Proxy, kind: str) -> None:
    """If an output is a list of text parts, it becomes text with all parts in order."""
    output = [{"type": "input_text", "text": "three files"}, {"type": "input_text", "text": "and a folder"}]
    items = [{"type": kind, "call_id": "call_77", "output": output}, {"role": "user", "content": proxy.prompt()}]
    for params in both(proxy.responses({"input": items})):
        must_be("The types of `items`", {item["type"] for item in params["items"]}, {"text"})
        must_have("The text of `items`", texts(params), "three files", "and a folder")


@pytest.mark.spec("input-joined", "HAND-38")
def test_lines_are_joined(proxy: Proxy) -> None:
    """Consecutive lines, including calls and outputs, form one text item; an image ends the text item."""
    call = {"type": "function_call", "call_id": "call_77", "name": "getFileTree", "arguments": "{}"}
    before = [
        {"role": "user", "content": "List."},
        call,
        {"type": "function_call_output", "call_id": "call_77", "output": "three files"},
        {"role": "assistant", "content": "Three."},
    ]
    image = {"role": "user", "content": [{"type": "input_image", "image_url": PIXEL}]}
    last = {"role": "user", "content": proxy.prompt("Last")}
    for given, wanted in (([*before, last], ["text"]), ([*before, image, *before, last], ["text", "image", "text"])):
        for params in both(proxy.responses({"input": given})):
            must_be("The types of `items`", [item["type"] for item in params["items"]], wanted)


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.spec("input-system", "HAND-19", "HAND-24")
def test_system_items_are_no_prompt(proxy: Proxy, role: str) -> None:
    """System and developer items become developer instructions and are not in `items`."""
    items = [{"role": role, "content": "Speak like a pirate."}, {"role": "user", "content": proxy.prompt()}]
    done = proxy.responses({"input": items})
    must_have("newConversation.developerInstructions", sent(done.params("newConversation")), "Speak like a pirate.")
    for params in both(done):
        must_lack("The text of `items`", texts(params), "pirate")
