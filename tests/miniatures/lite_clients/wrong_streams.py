"""Clients that read a stream wrongly."""

from __future__ import annotations

import json
from typing import Any

from codex_replay.reference.lite_client import client, reply, sse
from codex_replay.reference.lite_client.errors import Problem
from tests.miniatures.lite_clients.patching import Client, Reply, after, variant


@variant
def last_delta_only() -> None:
    """Keeps the last delta of an item instead of joining them."""
    Reply.joined = lambda self, key: self._pieces[key][-1] if key in self._pieces else None  # type: ignore[method-assign]
    trusts_deltas()


def trusts_deltas() -> None:
    def done(self: Any, event: dict[str, Any]) -> None:
        item = dict(event["item"])
        joined = self.joined(str(event.get("item_id") or item.get("id") or event.get("output_index")))
        field = reply.CALLS.get(item["type"])
        if joined is not None and field:
            item[field] = joined
        elif joined is not None:
            item["content"] = [{"type": "output_text", "text": joined}]
        self._items[event["output_index"]] = item

    Reply.done = done  # type: ignore[method-assign]


@variant
def deltas_are_trimmed() -> None:
    """Strips each delta before it joins them."""
    Reply.joined = lambda self, key: "".join(p.strip() for p in self._pieces[key]) if key in self._pieces else None  # type: ignore[method-assign]
    trusts_deltas()


@variant
def deltas_in_one_pot() -> None:
    """Joins the deltas of all open items into one."""
    reply._key = lambda event: "all"
    trusts_deltas()
    one = Reply.done

    def done(self: Any, event: dict[str, Any]) -> None:
        one(self, {**event, "item_id": "all"})
        self._pieces.clear()

    Reply.done = done  # type: ignore[method-assign]


@variant
def deltas_are_believed() -> None:
    """Never compares what it joined with the finished item."""
    trusts_deltas()


@variant
def needs_done_events() -> None:
    """Takes the text from output_text.done, which is not among the key events."""
    old = Reply.feed

    def feed(self: Any, name: str, data: str) -> None:
        event = json.loads(data)
        if event.get("type") in ("response.output_text.done", "response.function_call_arguments.done"):
            self.whole = {**getattr(self, "whole", {}), event["item_id"]: True}
        finished = event.get("type") == "response.output_item.done" and event["item"].get("type") in ("message", "function_call")
        if not finished or event["item"].get("id") in getattr(self, "whole", {}):
            old(self, name, data)

    Reply.feed = feed  # type: ignore[method-assign]


@variant
def rewrites_arguments() -> None:
    """Parses the arguments and sends them back written anew."""

    def compact(item: Any, *_: Any) -> Any:
        if item and item["type"] == "function_call":
            try:
                return {**item, "arguments": json.dumps(json.loads(item["arguments"]))}
            except ValueError:
                return {**item, "arguments": "{}"}
        return item

    after(client, "sent_back", compact)


@variant
def decodes_chunks() -> None:
    """Decodes each chunk by itself, so that a character cut in two is lost."""
    old = sse.lines
    sse.lines = lambda chunks: old(chunk.decode("utf-8", "replace").encode() for chunk in chunks)


@variant
def lf_only() -> None:
    """Knows lines that end in LF only."""

    def lines(chunks: Any) -> Any:
        rest = b""
        for chunk in chunks:
            *whole, rest = (rest + chunk).split(b"\n")
            yield from (line.decode() for line in whole)

    sse.lines = lines


@variant
def lines_of_python() -> None:
    """Ends a line at every character that str.splitlines knows."""
    sse.lines = lambda chunks: b"".join(chunks).decode("utf-8", "replace").splitlines()


@variant
def needs_a_space() -> None:
    """Ignores a field without a space after its colon."""
    old = sse.lines
    sse.lines = lambda chunks: (line for line in old(chunks) if not line or ": " in line[:10])


@variant
def knows_two_fields() -> None:
    """Fails on a field that is not `event` or `data`."""

    def lines(line: str) -> str:
        if line and not line.startswith(("event:", "data:", ":")):
            raise Problem(f"Unknown field {line}.")
        return line

    old = sse.lines
    sse.lines = lambda chunks: map(lines, old(chunks))


@variant
def first_part_only() -> None:
    """Prints the first part of a message."""
    old = reply.text_of
    reply.text_of = lambda item: old({**item, "content": item["content"][:1]} if item.get("content") else item)


@variant
def comments_are_data() -> None:
    """Takes every line that is not empty for data."""

    def events(chunks: Any) -> Any:
        for line in sse.lines(chunks):
            if line and not line.startswith("event:"):
                yield "", line.removeprefix("data:").strip()

    sse.events = events


@variant
def last_data_line_only() -> None:
    """Keeps the last `data:` line of an event instead of joining them."""
    old = sse.events
    sse.events = lambda chunks: ((name, data.rpartition("\n")[2]) for name, data in old(chunks))


@variant
def known_events_only() -> None:
    """Fails on an event that it does not know."""
    old = Reply.feed

    def feed(self: Any, name: str, data: str) -> None:
        if "codex_replay" in name:
            raise Problem(f"Unknown event {name}.")
        old(self, name, data)

    Reply.feed = feed  # type: ignore[method-assign]


@variant
def events_end_with_a_block() -> None:
    """Reads blocks of 4,096 bytes and takes each for whole events."""

    def events(chunks: Any) -> Any:
        stream = b"".join(chunks)
        for start in range(0, len(stream), 4096):
            for event in stream[start : start + 4096].decode("utf-8", "replace").replace("\r\n", "\n").split("\n\n"):
                data = [line[5:].strip() for line in event.split("\n") if line.startswith("data:")]
                if data:
                    yield "", data[0]

    sse.events = events


@variant
def reasoning_is_text() -> None:
    """Prints the summary of the reasoning before the text."""
    old = reply.text_of
    reply.text_of = lambda item: old(item) + "".join(part["text"] for part in item.get("summary", []))


@variant
def needs_usage() -> None:
    """Falls over when a response does not say what it cost."""
    old = Reply.feed

    def feed(self: Any, name: str, data: str) -> None:
        event = json.loads(data)
        if event.get("type") == "response.completed":
            event["response"]["usage"]["total_tokens"]
        old(self, name, data)

    Reply.feed = feed  # type: ignore[method-assign]


@variant
def goes_on() -> None:
    """Asks once more after the answer."""

    def again(text: str, self: Any, prompt: str) -> str:
        self.ask([client.user_message(prompt)])
        return text

    after(Client, "run", again)
