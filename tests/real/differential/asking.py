"""What the model is asked, compared: the requests that the real server sent, and those of the fake's ledger.

Not compared is what the fake leaves out on purpose (docs/fake-codex.md): the instructions of the binary itself, its permission
texts, the user's instructions, and the schemas of its tools. Times and ids are masked. Left out is also a request that the real
server sends on a busy machine only: with the output of a call that an interrupt ended, before the turn ends.
"""

from __future__ import annotations

import json
import re
from typing import Any

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"(?<=[Ww]all time: )[0-9.]+|(?<=aborted by user after )[0-9.]+|(?<=duration_seconds\\\":)[0-9.]+")
#: An approval that an interrupt or a cancel ends: the call is rejected or aborted, whichever is quicker.
_LOST = re.compile(
    r"dynamic tool call was cancelled before receiving a response|(exec command|patch) rejected by user|"
    r"Wall time: 0 seconds\\naborted by user|aborted by user after 0s"
)
_ABORTED = re.compile(r"^aborted by user after |\naborted by user$")
_PLACE = re.compile(r"<cwd>(.*?)</cwd>")
_OWN = ("<permissions instructions>", "# AGENTS.md instructions", "<collaboration_mode>")


def differences(real: list[dict[str, Any]], fake: list[dict[str, Any]]) -> list[str]:
    """Return a sentence for each difference between the requests of two runs; both are entries of a ledger."""
    left, right = _by_thread(real), _by_thread(fake)
    found = []
    if len(left) != len(right):
        found.append(f"the real server asked in {len(left)} threads, the fake in {len(right)}")
    for number, (theirs, ours) in enumerate(zip(left, right, strict=False)):
        if len(theirs) != len(ours):
            found.append(f"thread {number}: the real server asked {len(theirs)} times, the fake {len(ours)} times")
        for n, (one, other) in enumerate(zip(theirs, ours, strict=False)):
            found += [f"thread {number}, request {n}: {text}" for text in _unlike("", one, other)]
    return found


def _by_thread(entries: list[dict[str, Any]]) -> list[list[Any]]:
    threads: dict[Any, list[Any]] = {}
    for entry in entries:
        body = entry.get("body")
        if isinstance(body, dict) and "input" in body and not _is_late(body["input"]):
            threads.setdefault(body.get("prompt_cache_key"), []).append(normal(body))
    # Threads that run at once have no order: each is known by its first prompt.
    return sorted(threads.values(), key=lambda bodies: json.dumps(bodies[0]["input"]))


def normal(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request in the form in which it is compared."""
    input_ = [item for item in body["input"] if not _is_own(item)]
    kept = {k: v for k, v in body.items() if k not in ("instructions", "prompt_cache_key", "input", "tools")}
    kept["input"] = input_
    kept["tools"] = [
        tool if tool.get("type") == "web_search" else tool.get("name") or tool.get("type") for tool in body.get("tools", [])
    ]
    text = json.dumps(kept)
    for number, place in enumerate(dict.fromkeys(_PLACE.findall(text))):
        if place.startswith("/") and place != "/":
            text = re.sub(rf"(?<![\w/.]){re.escape(place)}(?=[\w/<\"\\ `.,:])", f"{{cwd {number}}}" if number else "{cwd}", text)
    ids: dict[str, str] = {}
    text = _ID.sub(lambda found: ids.setdefault(found[0], f"id {len(ids)}"), text)
    masked: dict[str, Any] = json.loads(_LOST.sub("rejected or aborted", _TIME.sub("0", text)))
    return masked


def _is_late(items: list[Any]) -> bool:
    """Return True for a request of a turn that an interrupt has ended: a later turn adds the words of the user to the output."""
    output = items[-1].get("output") if items else None
    return isinstance(output, str) and bool(_ABORTED.search(output))


def _is_own(item: Any) -> bool:
    content = item.get("content") if isinstance(item, dict) else None
    first = content[0] if isinstance(content, list) and content else None
    return isinstance(first, dict) and str(first.get("text", "")).startswith(_OWN)


def _unlike(path: str, real: Any, fake: Any) -> list[str]:
    if type(real) is type(fake) is dict:
        return [text for key in {**real, **fake} for text in _unlike(f"{path}.{key}", real.get(key), fake.get(key))]
    if type(real) is type(fake) is list and len(real) == len(fake):
        return [
            text for i, (one, other) in enumerate(zip(real, fake, strict=True)) for text in _unlike(f"{path}[{i}]", one, other)
        ]
    return [] if real == fake else [f"{path[1:]}: real {json.dumps(real)}, fake {json.dumps(fake)}"]
