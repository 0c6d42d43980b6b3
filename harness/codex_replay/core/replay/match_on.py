"""Decide which parts of two requests are compared, and which parts are left out.

A test case names the parts: `method`, `path` (with its query), `body`, one key of the body (`body.model`), `headers.NAME`. A part
with a `-` in front (`-body.prompt_cache_key`) is left out. Bodies are compared by their decoded values, so spacing, compression
and escapes do not matter. Two placeholders of redacted secrets are equal even if their numbers differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from codex_replay.core.cassette import http_frames
from codex_replay.core.redact.placeholders import is_placeholder

_NUMBER = re.compile(r"((?:redacted-(?:[a-z]{2,9}-){0,2})|user-)[1-9][0-9]{0,8}(?=@redacted\.example|$|[^0-9@])")


#: In the output of a shell tool that goes on: the number by which later calls name its terminal (0.92.0 to 0.169.0).
_TERMINAL = re.compile(r"\bsession ID (\d+)")


class BadMatchOn(ValueError):
    """The list of the parts of a request to compare is invalid; the error message is a sentence."""


class MatchOn:
    """The parts of a request that are compared: words such as `method`, `path`, `body.input`, `headers.originator`, `-body.x`."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        for word in self.words:
            head, dot, rest = word.removeprefix("-").partition(".")
            if head not in ("method", "path", "body", "headers") or (dot and (not rest or head in ("method", "path"))):
                raise BadMatchOn(
                    f'"{word}" is not a part of a request. Use method, path, body, body.KEY, headers or headers.NAME, '
                    "or exclude a part by a leading -."
                )
        self._in = [word for word in self.words if not word.startswith("-")]
        self._out = [word[1:] for word in self.words if word.startswith("-")]
        if not self._in:
            raise BadMatchOn("No part of a request is compared. Name at least one part, such as path.")
        if all(any(f"{word}.".startswith(f"{out}.") for out in self._out) for word in self._in):
            raise BadMatchOn("No part of a request is compared: every named part is also excluded.")

    def view(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return a dictionary of the compared parts of a request's payload."""
        view: dict[str, Any] = {}
        for word in self._in:
            head, dot, rest = word.partition(".")
            if head == "method":
                view["method"] = payload["method"]
            elif head == "path":
                view["target"] = _origin_form(payload["path"])  # under `path` it would be masked as a directory of the machine
            elif head == "headers":
                _put_headers(view, payload["headers"], rest)
            elif not dot:
                view["body"] = body_of(payload)
            else:
                view[word] = _at(body_of(payload), rest)
        for word in self._out:
            view = _without(view, word)
        return view


def _origin_form(target: str) -> str:
    """Return the path and query of a request target, which a client of a proxy writes as a whole URL (`http://host/path`)."""
    scheme, found, rest = target.partition("://")
    return "/" + rest.partition("/")[2] if found and scheme.isalpha() else target


def _put_headers(view: dict[str, Any], headers: list[list[str]], name: str) -> None:
    wanted = name.lower()
    for key, value in headers:
        if key.lower() == wanted or (not wanted and key.lower() not in ("host", "content-length", "date", "connection")):
            view[f"headers.{key.lower()}"] = value


def body_of(payload: dict[str, Any]) -> Any:
    """Return a body in the form that is compared: its JSON value, otherwise its exact text, or None for no body."""
    if "body" in payload or "view" in payload:
        return http_frames.body_value(payload)
    if "omitted" in payload:
        return f"<a body of {payload['omitted']} bytes that was not recorded>"
    return payload.get("text", payload.get("base64"))


def _at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if type(value) is dict else None
    return value


def _without(view: dict[str, Any], word: str) -> dict[str, Any]:
    """Return the compared parts of a request without the part that `word` names. The argument `view` is not changed."""
    head, dot, _ = word.partition(".")
    if head == "headers":
        return {key: value for key, value in view.items() if key != word.lower() and (dot or not key.startswith("headers."))}
    if head != "body":
        return {key: value for key, value in view.items() if key != ("target" if head == "path" else head)}
    left_out = word.split(".")
    kept = {}
    for key, value in view.items():
        keys = key.split(".")
        if keys == left_out[: len(keys)] and len(keys) < len(left_out):
            kept[key] = _dropped(value, left_out[len(keys) :]) if type(value) is dict else value
        elif keys[: len(left_out)] != left_out:
            kept[key] = value
    return kept


def _dropped(value: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    first, *rest = keys
    if first not in value:
        return value
    if not rest:
        return {key: inner for key, inner in value.items() if key != first}
    return {**value, first: _dropped(value[first], rest)} if type(value[first]) is dict else value


def without_numbers(value: Any) -> Any:
    """Return a value without the numbers of its placeholders, because the number of a placeholder differs between runs."""
    if type(value) is dict:
        return {key: without_numbers(inner) for key, inner in value.items()}
    if type(value) is list:
        return [without_numbers(inner) for inner in value]
    if type(value) is str:
        if value.startswith("eyJ") and is_placeholder(value.encode("utf-8", "replace")):
            return "redacted-jwt"
        if "redacted" in value:
            return _NUMBER.sub(r"\1N", value)
    return value


def placeholders(recorded: Any, live: Any) -> Iterator[tuple[str, str]]:
    """Yield each placeholder of the recording together with the live secret at the same place."""
    if type(recorded) is dict and type(live) is dict:
        for key, inner in recorded.items():
            if key in live:
                yield from placeholders(inner, live[key])
    elif type(recorded) is list and type(live) is list and len(recorded) == len(live):
        for inner, other in zip(recorded, live, strict=True):
            yield from placeholders(inner, other)
    elif type(recorded) is str and type(live) is str and recorded != live and is_placeholder(recorded.encode("utf-8", "replace")):
        yield recorded, live


def terminals(recorded: Any, live: Any) -> Iterator[tuple[str, str]]:
    """Yield pairs of JSON members that name corresponding terminals: the recorded member (`"session_id":1`) and the live member.

    `recorded` and `live` are the bodies of two requests. The server chose the number of each terminal, and sent this number to
    the model in the output of a tool.
    """
    ours, theirs = _outputs(recorded), _outputs(live)
    for call, output in ours.items():
        for one, other in zip(_TERMINAL.findall(output), _TERMINAL.findall(theirs.get(call, "")), strict=False):
            for colon in (":", ": "):
                yield f'"session_id"{colon}{one}', f'"session_id"{colon}{other}'


def _outputs(body: Any) -> dict[str, str]:
    """Return a dictionary from the id of each call in a request to the text output of the call."""
    items = body.get("input") if type(body) is dict else None
    calls = [item for item in (items if type(items) is list else []) if type(item) is dict and type(item.get("call_id")) is str]
    return {item["call_id"]: item["output"] for item in calls if type(item.get("output")) is str}
