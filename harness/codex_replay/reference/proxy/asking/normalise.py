"""Convert the requests to both endpoints (chat/completions and responses) to one common form: items, instructions, tools and
settings.

Messages and calls in the request become lines of text (`[user] ...`, `[function_call ...]`), with images between the lines.
HAND-40 requires this conversion, and notes that the original messages cannot be restored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from codex_replay.reference.proxy.asking.models import EFFORTS, Model, normalize_model
from codex_replay.reference.proxy.asking.tools import Tools, read_tools
from codex_replay.reference.proxy.errors import bad_request
from codex_replay.reference.proxy.settings import Settings
from codex_replay.reference.proxy.wire.json_text import text

TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
IMAGE_PARTS = ("image_url", "input_image")


class Item(NamedTuple):
    """One input item: a text, or the URL of an image."""

    kind: str
    value: str


class Asked(NamedTuple):
    """A client's request in the common form of both endpoints.

    `system` has the system and developer texts of the request. `effort` has the reasoning effort of the request, or of the
    model's alias.
    """

    endpoint: str
    model: Model
    items: tuple[Item, ...]
    system: tuple[str, ...]
    instructions: str | None
    tools: Tools
    effort: str | None
    summary: str | None
    stream: bool
    format: Any
    schema: Any
    choices: int | None
    include_usage: bool
    temperature: Any
    top_p: Any
    max_tokens: int | None
    body: dict[str, Any]


class Transcript:
    """Collect lines of text and images for the prompt. Consecutive lines become one text item."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._lines: list[str] = []

    def line(self, text: str) -> None:
        """Add a line, or a text of several lines."""
        self._lines.append(text)

    def image(self, role: str, url: str) -> None:
        """Add a line with the role of an image, and then the image."""
        self._lines.append(f"[{role}]")
        self._flush()
        self._items.append(Item("image", url))

    def items(self) -> tuple[Item, ...]:
        """Return all items of the prompt; there is at least one."""
        self._flush()
        return tuple(self._items) or (Item("text", ""),)

    def _flush(self) -> None:
        if self._lines:
            self._items.append(Item("text", "\n".join(self._lines)))
        self._lines = []


def chat_request(body: dict[str, Any], settings: Settings) -> Asked:
    """Read a request to `/v1/chat/completions`. Raises `ProxyError` (400) for an invalid request."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise bad_request("messages must be a list with at least one message.", "messages")
    transcript, system = Transcript(), list[str]()
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise bad_request(f"{where} is not a message with a role.", where)
        if message["role"] in ("system", "developer"):
            system.append(_text_of(message.get("content"), where))
        else:
            _chat_message(message, where, transcript)
    options = body.get("stream_options")
    usage = isinstance(options, dict) and options.get("include_usage") is True
    effort = _effort(body.get("reasoning_effort"), "reasoning_effort")
    return _asked("chat", body, settings, transcript, system, effort, body.get("response_format"), usage)


def _chat_message(message: dict[str, Any], where: str, transcript: Transcript) -> None:
    role = message["role"]
    if role == "tool":
        return _output(str(message.get("tool_call_id") or ""), message.get("content"), where, transcript)
    if role not in ("user", "assistant", "function"):
        raise bad_request(f"{where} has the unknown role {role!r}.", f"{where}.role")
    if message.get("content") is not None:
        _content(role, message["content"], where, transcript)
    for call in message.get("tool_calls") or []:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise bad_request(f"{where} has a tool call that is not a function call.", f"{where}.tool_calls")
        _call(function.get("name"), call.get("id"), function.get("arguments"), transcript)
    return None


def responses_request(body: dict[str, Any], settings: Settings) -> Asked:
    """Read a request to `/v1/responses`. Raises `ProxyError` (400)."""
    if body.get("previous_response_id"):
        raise bad_request("previous_response_id is not supported: nothing is stored.", "previous_response_id")
    given = body.get("input")
    transcript, system = Transcript(), list[str]()
    if isinstance(given, str):
        transcript.line(given)
    elif isinstance(given, list):
        for at, item in enumerate(given):
            _input_item(item, f"input[{at}]", transcript, system)
    else:
        raise bad_request("input must be a string or a list of items.", "input")
    instructions = body.get("instructions")
    if instructions is not None and not isinstance(instructions, str):
        raise bad_request("instructions must be a string.", "instructions")
    reasoning = body.get("reasoning") or {}
    if not isinstance(reasoning, dict):
        raise bad_request("reasoning must be an object.", "reasoning")
    effort = _effort(reasoning.get("effort"), "reasoning.effort")
    shape = body["text"].get("format") if isinstance(body.get("text"), dict) else None
    return _asked(
        "responses",
        body,
        settings,
        transcript,
        system,
        effort,
        shape or body.get("response_format"),
        body.get("include_usage") is True,
    )


def _input_item(item: Any, where: str, transcript: Transcript, system: list[str]) -> None:
    if not isinstance(item, dict):
        raise bad_request(f"{where} is not an item.", where)
    kind = item.get("type") or ("message" if "role" in item else "")
    if kind == "message":
        role = item.get("role")
        if role in ("system", "developer"):
            system.append(_text_of(item.get("content"), where))
        elif role in ("user", "assistant"):
            _content(role, item.get("content"), where, transcript)
        else:
            raise bad_request(f"{where} has the unknown role {role!r}.", f"{where}.role")
    elif kind == "function_call":
        _call(item.get("name"), item.get("call_id"), item.get("arguments"), transcript)
    elif kind in ("function_call_output", "tool_output"):
        _output(str(item.get("call_id") or ""), item.get("output"), where, transcript)
    elif kind in TEXT_PARTS or kind in IMAGE_PARTS:
        _content("user", [item], where, transcript)
    elif kind != "reasoning":  # its content is encrypted, so no line can show it
        raise bad_request(f"{where} is of the type {kind!r}, which cannot be passed on.", f"{where}.type")


def _asked(
    endpoint: str,
    body: dict[str, Any],
    settings: Settings,
    transcript: Transcript,
    system: list[str],
    effort: str | None,
    shape: Any,
    usage: bool,
) -> Asked:
    name = body.get("model") or settings.model
    if not isinstance(name, str):
        raise bad_request("model must be a string.", "model")
    model = normalize_model(name)
    stream = body.get("stream")
    if stream is not None and not isinstance(stream, bool):
        raise bad_request("stream must be true or false.", "stream")
    reasoning = body.get("reasoning")
    most = body.get("max_output_tokens", body.get("max_completion_tokens", body.get("max_tokens")))
    return Asked(
        endpoint=endpoint,
        model=model,
        items=transcript.items(),
        system=tuple(part for part in system if part.strip()),
        instructions=body.get("instructions") if endpoint == "responses" else None,
        tools=read_tools(body),
        effort=effort or model.effort,
        summary=reasoning.get("summary") if isinstance(reasoning, dict) else None,
        stream=settings.stream if stream is None else stream,
        format=shape,
        schema=_schema(shape),
        choices=_whole(body.get("n"), "n"),
        include_usage=usage,
        temperature=_number(body.get("temperature"), "temperature"),
        top_p=_number(body.get("top_p"), "top_p"),
        max_tokens=_whole(most, "max_output_tokens" if endpoint == "responses" else "max_tokens"),
        body=body,
    )


# -- the parts -------------------------------------------------------------------------------------------------------------


def _content(role: str, content: Any, where: str, transcript: Transcript) -> None:
    """Add a message of the client to the transcript.

    The texts of the message follow `[role]` on the same line, joined by line breaks. An image follows a line that contains
    only `[role]`.
    """
    if content is None or isinstance(content, str):
        transcript.line(f"[{role}] {content or ''}")
        return
    words: list[str] = []
    for part in _parts(content, where):
        if part.get("type") in IMAGE_PARTS:
            if words:
                transcript.line(f"[{role}] " + "\n".join(words))
            words = []
            transcript.image(role, _url(part, where))
        else:
            words.append(_part_text(part, where))
    if words:
        transcript.line(f"[{role}] " + "\n".join(words))


def _call(name: Any, call_id: Any, arguments: Any, transcript: Transcript) -> None:
    message = arguments if isinstance(arguments, str) else text(arguments if arguments is not None else {})
    transcript.line(f"[function_call name={name} call_id={call_id}] {message}")


def _output(call_id: str, output: Any, where: str, transcript: Transcript) -> None:
    if isinstance(output, list):
        words = "\n".join(_part_text(p, where) for p in _parts(output, where) if p.get("type") not in IMAGE_PARTS)
        transcript.line(f"[tool_output call_id={call_id}] {words}")
        for part in output:
            if part.get("type") in IMAGE_PARTS:
                transcript.image("tool_output", _url(part, where))
        return
    message = output if isinstance(output, str) else "" if output is None else text(output)
    transcript.line(f"[tool_output call_id={call_id}] {message}")


def _text_of(content: Any, where: str) -> str:
    """Return the text of a system message, which has no images."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(_part_text(part, where) for part in _parts(content, where))


def _parts(content: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise bad_request(f"The content of {where} must be a string or a list of parts.", f"{where}.content")
    return content


def _part_text(part: dict[str, Any], where: str) -> str:
    found = part.get("refusal") if part.get("type") == "refusal" else part.get("text")
    if part.get("type") not in TEXT_PARTS or not isinstance(found, str):
        raise bad_request(f"{where} has a part of the type {part.get('type')!r}, which cannot be passed on.", f"{where}.content")
    return found


def _url(part: dict[str, Any], where: str) -> str:
    found = part.get("image_url")
    found = found.get("url") if isinstance(found, dict) else found
    if not isinstance(found, str) or not found:
        raise bad_request(f"{where} has an image without a URL.", f"{where}.content")
    return found


def _schema(shape: Any) -> Any:
    """Return the JSON schema that the client demands for the answer.

    The chat API puts the schema under `json_schema`, and the Responses API next to `type`.
    """
    if not isinstance(shape, dict) or shape.get("type") != "json_schema":
        return None
    inner = shape.get("json_schema")
    found = inner.get("schema") if isinstance(inner, dict) else shape.get("schema")
    if not isinstance(found, dict):
        raise bad_request("The response format has no schema.", "response_format")
    return found


def _effort(value: Any, name: str) -> str | None:
    if value is not None and value not in EFFORTS:
        raise bad_request(f"{name} is {value!r}; it must be {', '.join(EFFORTS)}.", name)
    return value  # type: ignore[no-any-return]


def _whole(value: Any, name: str) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise bad_request(f"{name} must be a whole number of at least 1.", name)
    return value


def _number(value: Any, name: str) -> Any:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise bad_request(f"{name} must be a number.", name)
    return value
