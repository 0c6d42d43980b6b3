"""Turn the items of a scripted model into the event stream of a Responses backend.

The function `reply` is pure: it takes a turn of a script and the request's body, and returns a list of steps. A step is an
event to send, raw bytes, or a reason to wait; the caller sends the bytes and waits. The events of the reply have the order
of the Responses API (LITE-48 to LITE-62). Each event has the form of its type in the openai package (copied to
data/openai-*). All ids are derived from the label and the place of an item, so that two runs of one script send the same
bytes.
"""

from __future__ import annotations

from codex_replay.core.wire.json_text import compact
from codex_replay.protocol.responses.steps import FAILURES, Gate, Raw, Send, Wait
from codex_replay.protocol.script.keys import FINAL_KINDS, OUTPUT_KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from codex_replay.protocol.responses.steps import Step
    from codex_replay.protocol.script.script import Turn

#: The creation time of every response (2025-01-01T00:00:00Z, in seconds), so that recordings do not differ in it.
CREATED_AT = 1735689600


def reply(turn: Turn, body: Mapping[str, Any], label: str, whole: bool = False) -> list[Step]:
    """Build all steps of one reply, from `response.created` to the event that ends the reply.

    `label` is part of every id, and distinguishes the reply from the others of its session; `body` is the request's body.
    With `whole`, the reply follows the API reference: it repeats the settings of the request, and obeys the request's
    limits. Without `whole`, the reply repeats no settings, as in recordings of Codex, which does not read settings.
    """
    return list(steps_of(turn, body, label, whole))


def steps_of(turn: Turn, body: Mapping[str, Any], label: str, whole: bool = False) -> Iterator[Step]:
    """Return the steps of `reply` as a generator, which makes each step when it is needed."""
    return (_WholeReply if whole else _Reply)(turn, body, label).steps()


class _Reply:
    """A reply whose events are being built, with the number of each event, the finished items, and the count of the tokens."""

    waits = False  # the response is queued before it begins

    def __init__(self, turn: Turn, body: Mapping[str, Any], label: str) -> None:
        self.turn = turn
        self.label = label
        self.number = 0
        self.output: list[dict[str, Any]] = []
        self.characters = 0
        self.reasoning_characters = 0
        self.response: dict[str, Any] = {
            "id": turn.response_id or f"resp_{label}",
            "object": "response",
            "created_at": CREATED_AT,
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "max_output_tokens": None,
            "model": body.get("model") or "gpt-5.2-codex",
            "output": [],
            "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
            "previous_response_id": None,
            "prompt_cache_key": body.get("prompt_cache_key"),
            "reasoning": {"effort": None, "summary": None},
            "store": body.get("store") is True,
            "temperature": 1.0,
            "text": {"format": {"type": "text"}, "verbosity": "medium"},
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": None,
            "metadata": {},
        }

    def items(self) -> Sequence[Mapping[str, Any]]:
        """Return the items of the reply, from the items of the script."""
        return self.turn.items

    def steps(self) -> Iterator[Step]:
        items = self.items()
        if self.waits or (items and items[0]["type"] == "queued"):
            queued = {**self.response, "status": "queued"}
            yield self.send("response.created", response=queued)
            yield self.send("response.queued", response=queued)
        else:
            yield self.send("response.created", response=self.response)
        yield self.send("response.in_progress", response=self.response)
        for item in items:
            yield from self.item(item)
            if item["type"] in FINAL_KINDS:
                return
        if self.turn.end:
            yield self.send("response.completed", response=self.finished("completed"))

    def item(self, item: Mapping[str, Any]) -> Iterator[Step]:
        kind = item["type"]
        if kind in OUTPUT_KINDS:
            index = len(self.output)
            self.output.append({})
            yield from _ITEMS.get(kind, _hosted)(self, item, index)
        elif kind in _ENDS:
            yield _ENDS[kind](self, item)
        elif kind in _CONTROLS:
            yield _CONTROLS[kind](self, item)
        elif kind == "audio":
            from codex_replay.protocol.responses import hosted

            for type_, fields in hosted.audio(item, self.chunks):
                yield self.send(type_, **fields)

    def send(self, type_: str, **fields: Any) -> Send:
        event = {"type": type_, **fields, "sequence_number": self.number}
        self.number += 1
        return Send(event)

    def id(self, prefix: str, item: Mapping[str, Any], index: int) -> str:
        return str(item.get("id") or f"{prefix}_{self.label}_{index}")

    def added(self, index: int, item: Mapping[str, Any]) -> Send:
        return self.send("response.output_item.added", output_index=index, item=item)

    def event(self, event: Mapping[str, Any]) -> Send:
        """Return the event that the script contains, unchanged."""
        return Send(event)

    def arguments_done(self, at: Mapping[str, Any], name: str, arguments: str) -> Send:
        return self.send("response.function_call_arguments.done", **at, arguments=arguments)

    def encrypted(self, item: Mapping[str, Any], id_: str) -> str | None:
        """Return the encrypted text of a reasoning item, or None if the reply leaves it out."""
        return item.get("encrypted_content")

    def done(self, index: int, item: dict[str, Any]) -> Send:
        self.output[index] = item
        return self.send("response.output_item.done", output_index=index, item=item)

    def chunks(self, item: Mapping[str, Any], text: str) -> list[str]:
        """Split a text into deltas: a script item may set the lengths of its deltas, otherwise each delta has `delta` characters.

        An empty text has no deltas.
        """
        self.characters += len(text)
        if "deltas" in item:
            return list(item["deltas"])
        size = self.turn.delta
        return [text[i : i + size] for i in range(0, len(text), size)]

    def finished(self, status: str, **fields: Any) -> dict[str, Any]:
        """Return the final response object, with its status, all output items and the usage."""
        return {**self.response, "status": status, **fields, "output": [i for i in self.output if i], "usage": self.usage()}

    def usage(self) -> dict[str, Any] | None:
        """Return the token usage that the script sets; a missing count is computed as one token per four characters."""
        given = self.turn.usage
        if given is None:
            return None
        reasoning = given.get("reasoning_tokens", -(-self.reasoning_characters // 4))
        output = given.get("output_tokens", max(1, -(-self.characters // 4)))
        input_ = given.get("input_tokens", 10)
        return {
            "input_tokens": input_,
            "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": given.get("cached_tokens", 0)},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": given.get("total_tokens", input_ + output),
        }


class _WholeReply(_Reply):
    """A reply with all members that the OpenAI SDKs require: it repeats the settings of the request, and obeys them."""

    def __init__(self, turn: Turn, body: Mapping[str, Any], label: str) -> None:
        from codex_replay.protocol.responses import settings  # Codex needs none of it: it would cost every start

        super().__init__(turn, body, label)
        self.response |= {"completed_at": None, **settings.settings(body)}
        self._shows_reasoning = settings.shows_reasoning(body)
        self._left_out = settings.left_out(body)
        self._items = settings.within(turn.items, body)
        self.waits = body.get("background") is True
        self._cut = False  # the item in the making is the last one of an incomplete response

    def items(self) -> Sequence[Mapping[str, Any]]:
        return self._items

    def item(self, item: Mapping[str, Any]) -> Iterator[Step]:
        self._cut = item is self._last_before_incomplete()
        return super().item(item)

    def _last_before_incomplete(self) -> Mapping[str, Any] | None:
        if not self._items or self._items[-1]["type"] != "incomplete":
            return None
        return next((item for item in reversed(self._items) if item["type"] in OUTPUT_KINDS), None)

    def done(self, index: int, item: dict[str, Any]) -> Send:
        if self._cut and item.get("status") == "completed" and item["type"] not in _NEVER_INCOMPLETE:
            item = {**item, "status": "incomplete"}
        if item.get("type") in self._left_out:
            item = {**item, self._left_out[item["type"]]: None}
        return super().done(index, item)

    def finished(self, status: str, **fields: Any) -> dict[str, Any]:
        done = {"completed_at": CREATED_AT} if status == "completed" else {}
        return super().finished(status, **done, **fields)

    def arguments_done(self, at: Mapping[str, Any], name: str, arguments: str) -> Send:
        return self.send("response.function_call_arguments.done", **at, name=name, arguments=arguments)

    def event(self, event: Mapping[str, Any]) -> Send:
        """Add the sequence number to an event from the script, unless the script has set a number."""
        if "sequence_number" in event:
            return Send(event)
        self.number += 1
        return Send({**event, "sequence_number": self.number - 1})

    def encrypted(self, item: Mapping[str, Any], id_: str) -> str | None:
        return item.get("encrypted_content", f"encrypted_{id_}") if self._shows_reasoning else None


def _text(reply: _Reply, item: Mapping[str, Any], index: int) -> Iterator[Step]:
    annotations = item.get("annotations", [])
    part = {"type": "output_text", "text": item["text"], "annotations": annotations, "logprobs": []}

    def deltas(at: Mapping[str, Any]) -> Iterator[Step]:
        for piece in reply.chunks(item, item["text"]):
            yield reply.send("response.output_text.delta", **at, delta=piece, logprobs=[])
        for number, annotation in enumerate(annotations):
            yield reply.send("response.output_text.annotation.added", **at, annotation_index=number, annotation=annotation)
        yield reply.send("response.output_text.done", **at, text=item["text"], logprobs=[])

    return _message(reply, item, index, part, {**part, "text": "", "annotations": []}, deltas)


def _refusal(reply: _Reply, item: Mapping[str, Any], index: int) -> Iterator[Step]:
    def deltas(at: Mapping[str, Any]) -> Iterator[Step]:
        for piece in reply.chunks(item, item["refusal"]):
            yield reply.send("response.refusal.delta", **at, delta=piece)
        yield reply.send("response.refusal.done", **at, refusal=item["refusal"])

    part = {"type": "refusal", "refusal": item["refusal"]}
    return _message(reply, item, index, part, {**part, "refusal": ""}, deltas)


def _message(
    reply: _Reply,
    item: Mapping[str, Any],
    index: int,
    part: Mapping[str, Any],
    empty: Mapping[str, Any],
    deltas: Callable[[Mapping[str, Any]], Iterator[Step]],
) -> Iterator[Step]:
    message = {"id": reply.id("msg", item, index), "type": "message", "role": "assistant"}
    if "phase" in item:
        message["phase"] = item["phase"]
    at = {"item_id": message["id"], "output_index": index, "content_index": 0}
    yield reply.added(index, {**message, "status": "in_progress", "content": []})
    yield reply.send("response.content_part.added", **at, part=empty)
    yield from deltas(at)
    yield reply.send("response.content_part.done", **at, part=part)
    yield reply.done(index, {**message, "status": "completed", "content": [part]})


def _function_call(reply: _Reply, item: Mapping[str, Any], index: int) -> Iterator[Step]:
    given = item.get("arguments", {})
    arguments = given if isinstance(given, str) else compact(given)
    call = {
        "id": reply.id("fc", item, index),
        "type": "function_call",
        "name": item["name"],
        "call_id": _call_id(reply, item, index),
    }
    at = {"item_id": call["id"], "output_index": index}
    yield reply.added(index, {**call, "status": "in_progress", "arguments": ""})
    for piece in reply.chunks(item, arguments):
        yield reply.send("response.function_call_arguments.delta", **at, delta=piece)
    yield reply.arguments_done(at, item["name"], arguments)
    yield reply.done(index, {**call, "status": "completed", "arguments": arguments})


def _custom_tool_call(reply: _Reply, item: Mapping[str, Any], index: int) -> Iterator[Step]:
    call = {"id": reply.id("ctc", item, index), "type": "custom_tool_call", "name": item["name"]}
    call["call_id"] = _call_id(reply, item, index)
    at = {"item_id": call["id"], "output_index": index}
    yield reply.added(index, {**call, "status": "in_progress", "input": ""})
    for piece in reply.chunks(item, item["input"]):
        yield reply.send("response.custom_tool_call_input.delta", **at, delta=piece)
    yield reply.send("response.custom_tool_call_input.done", **at, input=item["input"])
    yield reply.done(index, {**call, "status": "completed", "input": item["input"]})


def _call_id(reply: _Reply, item: Mapping[str, Any], index: int) -> str:
    return str(item.get("call_id") or f"call_{reply.label}_{index}")


def _web_search_call(reply: _Reply, item: Mapping[str, Any], index: int) -> Iterator[Step]:
    action = item.get("action") or {"type": "search", "query": item.get("query", "")}
    call = {"id": reply.id("ws", item, index), "type": "web_search_call"}
    at = {"item_id": call["id"], "output_index": index}
    yield reply.added(index, {**call, "status": "in_progress", "action": {"type": "search", "query": ""}})
    for status in ("in_progress", "searching", "completed"):
        yield reply.send(f"response.web_search_call.{status}", **at)
    yield reply.done(index, {**call, "status": item.get("status", "completed"), "action": action})


def _reasoning(reply: _Reply, item: Mapping[str, Any], index: int) -> Iterator[Step]:
    summaries, contents = _texts(item.get("summary", [])), _texts(item.get("content", []))
    thought: dict[str, Any] = {"id": reply.id("rs", item, index), "type": "reasoning", "summary": []}
    at = {"item_id": thought["id"], "output_index": index}
    yield reply.added(index, thought)
    for number, text in enumerate(summaries):
        here = {**at, "summary_index": number}
        yield reply.send("response.reasoning_summary_part.added", **here, part={"type": "summary_text", "text": ""})
        for piece in reply.chunks({}, text):
            yield reply.send("response.reasoning_summary_text.delta", **here, delta=piece)
        yield reply.send("response.reasoning_summary_text.done", **here, text=text)
        yield reply.send("response.reasoning_summary_part.done", **here, part={"type": "summary_text", "text": text})
    for number, text in enumerate(contents):
        here = {**at, "content_index": number}
        yield reply.send("response.content_part.added", **here, part={"type": "reasoning_text", "text": ""})
        for piece in reply.chunks({}, text):
            yield reply.send("response.reasoning_text.delta", **here, delta=piece)
        yield reply.send("response.reasoning_text.done", **here, text=text)
        yield reply.send("response.content_part.done", **here, part={"type": "reasoning_text", "text": text})
    reply.reasoning_characters += sum(map(len, summaries + contents))
    whole = {**thought, "summary": [{"type": "summary_text", "text": text} for text in summaries]}
    if contents:
        whole["content"] = [{"type": "reasoning_text", "text": text} for text in contents]
    if (encrypted := reply.encrypted(item, thought["id"])) is not None:
        whole["encrypted_content"] = encrypted
    yield reply.done(index, whole)


def _texts(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _hosted(reply: _Reply, item: Mapping[str, Any], index: int) -> Iterator[Step]:
    from codex_replay.protocol.responses import hosted  # few scripts have one

    id_ = reply.id(hosted.KINDS[item["type"]].prefix, item, index)
    whole = hosted.finished(item, id_, _call_id(reply, item, index))
    at = {"item_id": id_, "output_index": index}
    yield reply.added(index, hosted.begun(whole))
    for type_, fields in hosted.progress(whole, item, reply.chunks):
        yield reply.send(type_, **(at if not type_.startswith(hosted.WITHOUT_ID) else {"output_index": index}), **fields)
    yield reply.done(index, whole)


def _any_item(reply: _Reply, item: Mapping[str, Any], index: int) -> Iterator[Step]:
    given = dict(item["item"])
    yield reply.added(index, given)
    yield reply.done(index, given)


def _failed(reply: _Reply, item: Mapping[str, Any]) -> Send:
    error = {"code": item["code"], "message": item.get("message", FAILURES.get(item["code"], "The model failed."))}
    return reply.send("response.failed", response={**reply.finished("failed", error=error), "usage": None})


def _incomplete(reply: _Reply, item: Mapping[str, Any]) -> Send:
    details = {"reason": item.get("reason", "max_output_tokens")}
    return reply.send("response.incomplete", response=reply.finished("incomplete", incomplete_details=details))


def _error(reply: _Reply, item: Mapping[str, Any]) -> Send:
    code = item.get("code", "server_error")
    message = item.get("message", FAILURES.get(code, "The server had an error while processing your request."))
    return reply.send("error", code=code, message=message, param=item.get("param"))


def _event(reply: _Reply, item: Mapping[str, Any]) -> Send:
    return reply.event(item["event"])


#: Items whose types know no such status.
_NEVER_INCOMPLETE = ("image_generation_call", "apply_patch_call")
#: Item -> its events; those of the other kinds are in the table of `codex_replay.protocol.responses.hosted`.
_ITEMS: dict[str, Callable[[_Reply, Mapping[str, Any], int], Iterator[Step]]] = {
    "text": _text,
    "refusal": _refusal,
    "function_call": _function_call,
    "custom_tool_call": _custom_tool_call,
    "web_search_call": _web_search_call,
    "reasoning": _reasoning,
    "item": _any_item,
}
_ENDS: dict[str, Callable[[_Reply, Mapping[str, Any]], Send]] = {"failed": _failed, "incomplete": _incomplete, "error": _error}
_CONTROLS: dict[str, Callable[[_Reply, Mapping[str, Any]], Step]] = {
    "event": _event,
    "raw": lambda _, item: Raw(item["data"].encode()),
    "comment": lambda _, item: Raw(b": " + item.get("text", "").encode() + b"\n\n"),
    "wait": lambda _, item: Wait(item["ms"]),
    "gate": lambda _, item: Gate(item["name"]),
}
