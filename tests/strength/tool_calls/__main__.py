"""`python -m tests.strength.tool_calls` writes the file of vectors: the grammar's texts with the oracle's outcomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.strength.tool_calls.grammar import FILL, Text, texts
from tests.strength.tool_calls.oracle import Call, Outcome, judge

PATH = Path(__file__).resolve().parents[3] / "harness" / "codex_replay" / "protocol" / "data" / "tool-calls.ndjson"


def lines() -> str:
    """Return the file's text."""
    return "".join(json.dumps(row(text)) + "\n" for text in texts())


def row(text: Text) -> dict[str, Any]:
    """Return the line of a text. Raises `Undecided` if no statement says what must come of it."""
    filled = text.text
    for name, (part, times) in FILL.items():
        filled = filled.replace(name, part * times)
    outcomes, statements = judge(filled)
    best, *others = [_emptied(_outcome(each)) for each in outcomes]
    found: dict[str, Any] = {"id": text.id, "feature": text.feature, "why": text.why, "statements": statements, "text": text.text}
    if text.cuts is not None:
        found["cuts"] = list(text.cuts)
    found |= best
    if others:
        found["or"] = others
    if filled != text.text:
        found["fill"] = {name: list(part) for name, part in FILL.items()}
    return found


def _outcome(outcome: Outcome) -> dict[str, Any]:
    if outcome.error:
        return {"error": True}
    return {"calls": [_call(each) for each in outcome.calls], "output": outcome.output}


def _call(call: Call) -> dict[str, Any]:
    found = {"name": call.name, "arguments": call.arguments}
    return found if call.verbatim is None else {**found, "verbatim": call.verbatim}


def _emptied(value: Any) -> Any:
    """Put the name of a large text where it stands."""
    if isinstance(value, str):
        for name, (part, times) in FILL.items():
            value = value.replace(part * times, name)
        return value
    if isinstance(value, list):
        return [_emptied(each) for each in value]
    return {key: _emptied(each) for key, each in value.items()} if isinstance(value, dict) else value


if __name__ == "__main__":
    PATH.write_text(lines(), encoding="ascii")
