"""The mutants of the answers to the client: bodies, events, headers and the status."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from codex_replay.plugin.proxy.http import Exchange
from tests.mutants.operators import Change
from tests.mutants.recording import Mutation, Recording, answer_kind
from tests.mutants.sites import OPAQUE, Mutant, Sites, change_in

#: What an answer repeats of the client's request: one value each, and not a place for each member below it.
REPEATED = OPAQUE | {"tools", "tool_choice", "reasoning", "format"}
#: Members of which each word is a site; any other text is one site.
WORDS = {"type", "object", "status", "role", "finish_reason"}
#: Events whose response is that of response.completed at another time: what may differ there, and nothing below it.
EARLIER = ("response.created", "response.in_progress", "response.failed")
MOVING = {"response", "response.id", "response.object", "response.created_at", "response.status", "response.error"}
MOVING |= {"response.model", "response.output", "response.usage"}
#: Headers of the connection: a client does not see them, or has no answer without them.
CONNECTION = {"connection", "content-length", "date", "keep-alive", "transfer-encoding"}


def chunk_kind(value: Any) -> str:
    """Return which event of a stream it is: its type, or what a chunk of chat carries."""
    if not isinstance(value, dict):
        return "[DONE]"
    if "type" in value:
        return str(value["type"])
    choices = value.get("choices")
    if not choices:
        return "usage chunk" if choices == [] else "error"
    delta = choices[0].get("delta") or {}
    name = next((key for key in ("role", "tool_calls", "content") if key in delta), "")
    return f"{name} chunk" if name else "last chunk"


@lru_cache(maxsize=4096)
def events_of(body: bytes) -> tuple[tuple[bytes, str], ...]:
    """Return the events of a stream, each with the blank line that ends it and with its kind."""
    return tuple((block + b"\n\n", chunk_kind(event_value(block))) for block in body.split(b"\n\n") if block)


def event_value(block: bytes) -> Any:
    """Return the data of an event decoded; None if it is no JSON."""
    return decoded(b"\n".join(line[6:] for line in block.splitlines() if line.startswith(b"data: ")))


def decoded(text: bytes) -> Any:
    """Return JSON decoded; None if it is no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def event_of(block: bytes, value: Any) -> bytes:
    """Return the event with other data."""
    lines = [line for line in block.rstrip(b"\n").splitlines() if not line.startswith(b"data: ")]
    return b"\n".join([*lines, b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()]) + b"\n\n"


def answer_mutants(recordings: Iterable[Recording]) -> Iterator[Mutant]:
    """Yield the mutants of the answers: bodies, events, headers, status."""
    bodies: dict[str, Sites] = {}
    events: dict[tuple[str, str], Sites] = {}
    headers: dict[str, set[str]] = {}
    for done in (done for one in recordings for done in one.exchanges):
        if not done.status:
            continue
        name = answer_kind(done)
        headers.setdefault(name, set()).update({key.lower() for key, _ in done.headers} - CONNECTION)
        if done.is_stream:
            for block, kind in events_of(done.body):
                if (value := event_value(block)) is not None:
                    words = () if "error" in value else WORDS
                    events.setdefault((name, kind), Sites(REPEATED, words)).add(value)
        elif (value := decoded(done.body)) is not None:
            bodies.setdefault(name, Sites(REPEATED, () if done.status >= 400 else WORDS)).add(value)
    for name, found in bodies.items():
        for path, wanted, what, change in found.all():
            yield Mutant("answers", f"{name} {path}", f"({wanted}) {what}", _in_body(name, path, str(wanted), change), name)
    for (name, event), found in events.items():
        for path, wanted, what, change in found.all():
            if event in EARLIER and path.startswith("response") and path not in MOVING:
                continue
            mutation = _in_event(name, event, path, str(wanted), change)
            yield Mutant("answers", f"{name} {event} {path}", f"({wanted}) {what}", mutation, name)
        for what, alter in EVENTS.items():
            yield Mutant("answers", f"{name} {event}", what, _in_blocks(name, event, alter), name)
    for name in sorted({name for name, _ in events}):
        if "chat" in name:
            for what, alter in EVENTS.items():
                yield Mutant("answers", f"{name} [DONE]", what, _in_blocks(name, "[DONE]", alter), name)
    for name, keys in headers.items():
        for key in sorted(keys):
            for what, value in (("is missing", None), ("has another value", "x-other")):
                yield Mutant("answers", f"{name} header {key}", what, _in_headers(name, key, value), name)
        yield Mutant("answers", f"{name} header x-unknown", "is added", _in_headers(name, "x-unknown", "x"), name)
        for status in (200, 201, 400, 401, 404, 500, 502):
            yield Mutant("answers", f"{name} status", f"is {status}", _with_status(name, status), name)


EVENTS: dict[str, Callable[[list[bytes], int], None]] = {
    "is missing": lambda all_, at: all_.__delitem__(at),
    "comes twice": lambda all_, at: all_.insert(at, all_[at]),
    "comes first": lambda all_, at: all_.insert(0, all_.pop(at)),
    "comes last": lambda all_, at: all_.append(all_.pop(at)),
    "has another event name": lambda all_, at: all_.__setitem__(at, b"event: other\n" + b"".join(_data_only(all_[at]))),
    "has no event name": lambda all_, at: all_.__setitem__(at, b"".join(_data_only(all_[at]))),
    "has broken data": lambda all_, at: all_.__setitem__(at, b'data: {"broken\n\n'),
}


def _data_only(block: bytes) -> list[bytes]:
    return [line for line in block.splitlines(keepends=True) if not line.startswith(b"event:")]


def _in_body(name: str, path: str, wanted: str, change: Change) -> Mutation:
    def mutation(done: Exchange) -> Exchange:
        if done.is_stream or not done.body or answer_kind(done) != name:
            return done
        value = decoded(done.body)
        if value is None or not change_in(value, path, wanted, change):
            return done
        return replace(done, body=json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())

    return mutation


def _in_event(name: str, event: str, path: str, wanted: str, change: Change) -> Mutation:
    def mutation(done: Exchange) -> Exchange:
        if not done.is_stream or answer_kind(done) != name:
            return done
        all_, found = [], False
        for block, kind in events_of(done.body):
            value = event_value(block) if kind == event else None
            changed = value is not None and change_in(value, path, wanted, change)
            all_.append(event_of(block, value) if changed else block)
            found = found or changed
        return replace(done, body=b"".join(all_)) if found else done

    return mutation


def _in_blocks(name: str, event: str, alter: Callable[[list[bytes], int], None]) -> Mutation:
    def mutation(done: Exchange) -> Exchange:
        if not done.is_stream or answer_kind(done) != name:
            return done
        kinds = events_of(done.body)
        at = next((n for n, (_, kind) in enumerate(kinds) if kind == event), None)
        if at is None:
            return done
        all_ = [block for block, _ in kinds]
        alter(all_, at)
        body = b"".join(all_)
        return replace(done, body=body) if body != done.body else done

    return mutation


def _in_headers(name: str, key: str, value: str | None) -> Mutation:
    def mutation(done: Exchange) -> Exchange:
        if not done.status or answer_kind(done) != name:
            return done
        kept = [(each, said) for each, said in done.headers if each.lower() != key]
        added = [] if value is None else [(key, value)]
        return replace(done, headers=[*kept, *added])

    return mutation


def _with_status(name: str, status: int) -> Mutation:
    def mutation(done: Exchange) -> Exchange:
        return replace(done, status=status) if done.status != status and answer_kind(done) == name else done

    return mutation
