"""Compare the calls and the text of an answer with the outcomes of a tool-call vector."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

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
#: The maximum number of characters of a comparison.
MOST = 4000


def squeezed(text: str) -> str:
    """Return the text with each run of white space as one space, because the space around a removed call is not specified."""
    return re.sub(r"[ \t\r\n]+", " ", text).strip(" ")


def same(calls: Sequence[Call], outcome: Outcome) -> bool:
    """Return True if the calls of an answer are the calls of an outcome."""
    try:
        return [(call.name, json.loads(call.arguments)) for call in calls] == list(outcome.calls)
    except ValueError:
        return False


def fits(answer: Answer, outcome: Outcome, vector: Vector) -> bool:
    """Return True if an answer has the given outcome of a test vector."""
    unchanged = vector.text == outcome.output  # then the white space counts, too
    text = answer.text == outcome.output if unchanged else squeezed(answer.text) == squeezed(outcome.output)
    return text and same(answer.calls, outcome)


def must_fit(answer: Answer, vector: Vector) -> None:
    """Check that an answer has one of the outcomes that a vector allows.

    The AssertionError says first what is wrong with the answer, so that all vectors with the same mistake are one cause.
    """
    __tracebackhide__ = True
    allowed = [outcome for outcome in vector.outcomes if not outcome.error]
    if any(fits(answer, outcome, vector) for outcome in allowed):
        return
    hint = f"\n{UNFOUND}" if answer.text == vector.text and not answer.calls else ""
    raise AssertionError(
        f"{' '.join(mistakes(answer, allowed, TAGS))}{hint}\n"
        f"The vector {vector.id} ({', '.join(vector.statements)}): {vector.why}\n{compared(answer, allowed, vector.text)}"
    )


def compared(answer: Answer, allowed: Sequence[Outcome], text: str) -> str:
    """Return lines with the text of the model, the allowed outcomes and the outcome of the answer."""
    wanted = " or ".join(f"calls {list(outcome.calls)} and text {outcome.output!r}" for outcome in allowed)
    got = f"calls {[(call.name, call.arguments) for call in answer.calls]} and text {answer.text!r}"
    return f"The model wrote: {text!r}\nexpected: {wanted}\ngot:      {got}"[:MOST]


def mistakes(answer: Answer, allowed: Sequence[Outcome], tags: Sequence[str]) -> list[str]:
    """Return a sentence for each difference of an answer from the allowed outcome with the most similar number of calls.

    `tags` are the texts that begin and end a call. The text is compared only if the calls are right, because a lost call also
    changes the text.
    """
    calls = answer.calls
    best = min(allowed, key=lambda outcome: abs(len(outcome.calls) - len(calls)))
    found = []
    if len(calls) < len(best.calls):
        found.append(f"The model wrote {_number_of(best.calls)} in its text, but the client got {len(calls) or 'none'}.")
    elif len(calls) > len(best.calls):
        found.append(f"The client got {_number_of(calls)}, but the model wrote {len(best.calls) or 'none'}.")
    else:
        for call, (name, arguments) in zip(calls, best.calls, strict=True):
            found += _mistakes_of(call, name, arguments)
    if shown := [tag for tag in tags if tag in answer.text and not any(tag in outcome.output for outcome in allowed)]:
        found.append(f"The text for the client contains the markup of tool calls: {', '.join(map(short, shown))}.")
    elif not found:
        found.append(_mistake_of_text(answer.text, best.output))
    return found


def _number_of(calls: Sequence[object]) -> str:
    return f"{len(calls)} tool call{'s' * (len(calls) != 1)}"


def _mistake_of_text(text: str, wanted: str) -> str:
    kind = "is wrong"
    if _is_in(squeezed(text), squeezed(wanted)):
        kind = "lacks a part of the model's text"
    if _is_in(squeezed(wanted), squeezed(text)):
        kind = "has a part that is not for the user" if squeezed(wanted) != squeezed(text) else "has other white space"
    return f"The text for the client {kind}: the text must be {short(wanted)}, but it is {short(text)}."


def _is_in(part: str, whole: str) -> bool:
    """Return True if all characters of `part` are in `whole`, in this order."""
    rest = iter(whole)
    return all(char in rest for char in part)


def _mistakes_of(call: Call, name: str, arguments: Any) -> list[str]:
    if call.name != name:
        return [f"The tool call must be of {short(name)}, but it is of {short(call.name)}."]
    if not arguments and call.arguments in ("", "null"):
        return [f"The tool call {short(name)} has no arguments: the client must get '{{}}', but it got {short(call.arguments)}."]
    try:
        same = json.loads(call.arguments) == arguments
    except ValueError:
        return [f"The arguments of the tool call {short(name)} are not valid JSON."]
    return [] if same else [f"The arguments of the tool call {short(name)} are not those that the model wrote."]
