"""Compare the calls and the text of an answer with the outcomes of a tool-call vector."""

from __future__ import annotations

import json
import re
from typing import Any

from codex_replay.core.text.plural import plural
from codex_replay.plugin.proxy.vectors import Outcome, Vector
from suites.proxy.answers import Answer, Call
from suites.proxy.saying import short

#: The markup of a call, which the client must not see.
TAGS = ("<tool_call>", "</tool_call>")
#: A hint for the author of a proxy that does not look for calls in a text.
UNFOUND = (
    "The client got the text unchanged. If the proxy supports only native calls, set its capabilities without text-tools "
    "(docs/proxy.md); then these cases are skipped."
)
#: The maximum number of characters of a message.
MOST = 4000


def squeezed(text: str) -> str:
    """Return the text with each run of white space as one space, because the space around a removed call is not specified."""
    return re.sub(r"[ \t\r\n]+", " ", text).strip(" ")


def fits(answer: Answer, outcome: Outcome, vector: Vector) -> bool:
    """Return True if an answer has the given outcome of a test vector."""
    try:
        calls = [(call.name, json.loads(call.arguments)) for call in answer.calls]
    except ValueError:
        return False
    if vector.text == outcome.output:
        return calls == [] and answer.text == outcome.output
    return calls == list(outcome.calls) and squeezed(answer.text) == squeezed(outcome.output)


def must_fit(answer: Answer, vector: Vector) -> None:
    """Check that an answer has one of the outcomes that a vector allows.

    The AssertionError says first what is wrong with the answer, so that all vectors with the same mistake are one cause.
    """
    __tracebackhide__ = True
    allowed = [outcome for outcome in vector.outcomes if not outcome.error]
    if any(fits(answer, outcome, vector) for outcome in allowed):
        return
    wanted = " or ".join(f"calls {list(outcome.calls)} and text {outcome.output!r}" for outcome in allowed)
    got = f"calls {[(call.name, call.arguments) for call in answer.calls]} and text {answer.text!r}"
    hint = f"\n{UNFOUND}" if answer.text == vector.text and not answer.calls else ""
    raise AssertionError(
        f"{' '.join(_mistakes(answer, allowed))}{hint}\nThe vector {vector.id} ({', '.join(vector.statements)}): {vector.why}\n"
        f"The model wrote: {vector.text!r}\nexpected: {wanted}\ngot:      {got}"[:MOST]
    )


def _mistakes(answer: Answer, allowed: list[Outcome]) -> list[str]:
    """Return the sentences for the differences of an answer from the allowed outcome with the most similar number of calls."""
    calls, shown = answer.calls, [tag for tag in TAGS if tag in answer.text]
    best = min(allowed, key=lambda outcome: abs(len(outcome.calls) - len(calls)))
    found = []
    if len(calls) < len(best.calls):
        wrote = plural(len(best.calls), "tool call")
        found.append(f"The model wrote {wrote} in its text, but the client got {len(calls) or 'none'}.")
    elif len(calls) > len(best.calls):
        found.append(f"The client got {plural(len(calls), 'tool call')}, but the model wrote {len(best.calls) or 'none'}.")
    for call, (name, arguments) in zip(calls, best.calls, strict=False):
        if len(calls) == len(best.calls):
            found += _mistakes_of(call, name, arguments)
    if shown := [tag for tag in shown if not any(tag in outcome.output for outcome in allowed)]:
        found.append(f"The text for the client contains the markup of tool calls: {', '.join(map(short, shown))}.")
    elif squeezed(answer.text) != squeezed(best.output) or not found:
        found.append(f"The text for the client must be {short(best.output)}, but it is {short(answer.text)}.")
    return found


def _mistakes_of(call: Call, name: str, arguments: Any) -> list[str]:
    if call.name != name:
        return [f"The tool call must be of {short(name)}, but it is of {short(call.name)}."]
    try:
        same = json.loads(call.arguments) == arguments
    except ValueError:
        return [f"The arguments of the tool call {short(name)} are not valid JSON."]
    return [] if same else [f"The arguments of the tool call {short(name)} are not those that the model wrote."]
