"""Functions that find the parts of a client's request in the requests that the model got.

A proxy may put a text in `instructions` or in any item of `input`, as a message of any role or as a separate item
(`function_call`, `function_call_output`). The checks only require that the text is present, and that an output belongs to the
right call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from codex_replay.plugin.proxy.fixture import Proxy

#: The length of a long text, and the number of texts, that a failure shows.
LONG, MANY = 400, 14


@dataclass(frozen=True)
class Called:
    """A tool call in the client's history; `path` is a unique word in the arguments of the call, and `output` is its output."""

    id: str
    path: str
    output: str


def model_bodies(proxy: Proxy) -> list[Any]:
    """Return the bodies of the requests that the model got for this case; raises AssertionError if the model got none."""
    bodies = [call["body"] for call in proxy.model_calls()]
    if not bodies:
        last = proxy.exchanges[-1]
        methods = ", ".join(call["method"] for call in last.calls()) or "nothing"
        raise AssertionError(
            f"No request with the text of the client's last message (it contains {proxy.marker!r}) reached the model. The proxy "
            f"sent its app-server: {methods}; it answered {last.status}: {last.shown(200)}"
        )
    return bodies


def strings(body: Any) -> list[tuple[str, str]]:
    """Return the texts of a request to the model in order: each text of `instructions` and `input`, with its JSON path."""
    found: list[tuple[str, str]] = []
    for name in ("instructions", "input"):
        _walk(body.get(name), name, found)
    return found


def _walk(value: Any, path: str, found: list[tuple[str, str]]) -> None:
    if isinstance(value, str):
        found.append((path, value))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            _walk(each, f"{path}[{number}]", found)
    elif isinstance(value, dict):
        for key, each in value.items():
            _walk(each, f"{path}.{key}", found)


def shown(body: Any, number: int) -> str:
    """Return the texts of a request to the model for a failure message: a heading, and one line for each text."""
    report = [(path, text) for path, text in strings(body) if not path.endswith((".type", ".role"))]
    lines = [f"  {path}: {text[:LONG]!r}{'...' if len(text) > LONG else ''}" for path, text in report[-MANY:]]
    more = [f"  ... {len(report) - MANY} texts before these"] if len(report) > MANY else []
    return "\n".join([f"Texts of request {number} to the model:", *more, *lines])


def must_reach(proxy: Proxy, *texts: tuple[str, str]) -> None:
    """Check that each request to the model has the given texts in order."""
    __tracebackhide__ = True
    for number, body in enumerate(model_bodies(proxy), 1):
        whole = "\n".join(text for _, text in strings(body))
        at, before = -1, ""
        for where, text in texts:
            first = whole.find(text)
            if first < 0:
                raise AssertionError(
                    f"{where} of the client's request ({text!r}) did not reach the model.\n{shown(body, number)}"
                )
            if first < at:
                raise AssertionError(
                    f"{where} of the client's request ({text!r}) reached the model before {before}, which comes first there. "
                    f"{shown(body, number)}"
                )
            at, before = first, where


def must_reach_as_image(proxy: Proxy, url: str, where: str) -> None:
    """Check that at least one request to the model has the data URL of an image; `where` is the image's place, for the message.

    If a proxy submits the prompt twice, once without the images, the app-server may join the two.
    """
    __tracebackhide__ = True
    bodies = model_bodies(proxy)
    if not any(url in text for body in bodies for _, text in strings(body)):
        raise AssertionError(f"{where} did not reach the model.\n{shown(bodies[0], 1)}")


def must_reach_once(proxy: Proxy, *texts: tuple[str, str]) -> None:
    """Check that each request to the model has the given texts in order, and each text only once."""
    __tracebackhide__ = True
    must_reach(proxy, *texts)
    for number, body in enumerate(model_bodies(proxy), 1):
        for where, text in texts:
            paths = [path for path, found in strings(body) for _ in range(found.count(text))]
            if len(paths) > 1:
                raise AssertionError(
                    f"{where} of the client's request ({text!r}) reached the model {len(paths)} times ({', '.join(paths)} of "
                    f"request {number}). Send it in one place: developerInstructions, or baseInstructions, of thread/start or "
                    "newConversation."
                )


def must_not_be_the_users(proxy: Proxy, where: str, text: str) -> None:
    """Check that no request to the model has a text in a message of the user.

    `where` is the place of the text in the client's request.
    """
    __tracebackhide__ = True
    for number, body in enumerate(model_bodies(proxy), 1):
        for path, item in _items(body, "message"):
            if item.get("role") == "user" and text in _joined_text(item.get("content")):
                raise AssertionError(
                    f"{where} of the client's request ({text!r}) reached the model as text of the user ({path} of request "
                    f"{number}). A model obeys a text of the user less than a system text, and a user can forge such a text. "
                    "Send it as "
                    "developerInstructions (or baseInstructions) of thread/start or newConversation."
                )


def must_be_paired(proxy: Proxy, *calls: Called) -> None:
    """Check that each output reaches the model with the id of its own call, or next to its own call."""
    __tracebackhide__ = True
    for number, body in enumerate(model_bodies(proxy), 1):
        for call in calls:
            if not any(call.output in text for _, text in strings(body)):
                raise AssertionError(f"The output of {call.id} ({call.output!r}) did not reach the model.\n{shown(body, number)}")
        if wrong := _in_items(body, calls) or _in_text(body, calls):
            raise AssertionError(f"{wrong}\n{shown(body, number)}")


def must_be_encoded_once(proxy: Proxy, where: str, key: str) -> None:
    """Check that the arguments of an earlier call reach the model as one JSON text, not as a JSON text within another one.

    A proxy may write a call as a JSON object or as markup; then the arguments are a quoted text behind a colon or `=`.
    """
    __tracebackhide__ = True
    for number, body in enumerate(model_bodies(proxy), 1):
        for path, text in strings(body):
            if found := re.search(rf'(?<![:=\s\\])\s*"\{{\\"{key}\\"', text):
                shown = text[max(0, found.start() - 60) : found.end() + 60]
                raise AssertionError(
                    f"{where} of the client's request is a JSON text already, but the proxy encoded it once more ({path} of "
                    f"request {number} to the model): {shown!r}. Pass on the client's `arguments` unchanged."
                )


def _items(body: Any, kind: str) -> list[tuple[str, Any]]:
    given = body.get("input")
    items = enumerate(given if isinstance(given, list) else [])
    return [(f"input[{number}]", item) for number, item in items if isinstance(item, dict) and item.get("type") == kind]


def _joined_text(value: Any) -> str:
    found: list[tuple[str, str]] = []
    _walk(value, "", found)
    return "\n".join(text for _, text in found)


def _in_items(body: Any, calls: tuple[Called, ...]) -> str:
    """Return an error sentence about tool outputs that are separate items of the input, or "".

    The proxy may give a call and its output a new id, which must be the same for both.
    """
    own = {call.id: call for call in calls}
    for _, item in _items(body, "function_call"):
        own.update({item.get("call_id"): call for call in calls if call.path in str(item.get("arguments"))})
    for path, item in _items(body, "function_call_output"):
        for call in calls:
            under = item.get("call_id")
            if call.output in _joined_text(item.get("output")) and own.get(under) is not call:
                return f"The output of {call.id} ({call.output!r}) reached the model as {path} under the call_id {under!r}."
    return ""


def _in_text(body: Any, calls: tuple[Called, ...]) -> str:
    """Return an error sentence about tool outputs inside a text, or "".

    The name of the call must be before or after each output in the text.
    """
    given = body.get("input")
    items = [given] if isinstance(given, str) else [item for item in given or [] if not _is_native(item)]
    text = "\n".join([str(body.get("instructions") or ""), *map(_joined_text, items)])
    names = sorted(((at, call) for call in calls for word in (call.id, call.path) for at in _places(text, word)), key=_at)
    outputs = sorted(((at, call) for call in calls for at in _places(text, call.output)), key=_at)
    before = [next((owner for at, owner in reversed(names) if at < place), None) for place, _ in outputs]
    behind = [next((owner for at, owner in names if at > place), None) for place, _ in outputs]
    wanted = [call for _, call in outputs]
    if wanted in (before, behind):
        return ""
    place, call, named = next((at, call, named) for (at, call), named in zip(outputs, before, strict=True) if named is not call)
    under = f"under {named.id}" if named else "without the id or the arguments of its call before it"
    return f"The output of {call.id} ({call.output!r}) reached the model {under}: {text[max(0, place - 90) : place + 60]!r}."


def _is_native(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") in ("function_call", "function_call_output")


def _places(text: str, word: str) -> list[int]:
    return [found.start() for found in re.finditer(re.escape(word), text)]


def _at(found: tuple[int, Called]) -> int:
    return found[0]
