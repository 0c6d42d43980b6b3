"""The public test vectors for tool-call parsing. Each vector has the text of a model, and the calls that a client must get.

The vectors are lines of JSON, so that programs in any language can use them (docs/tool-call-vectors.md).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

PATH = Path(__file__).parents[2] / "protocol" / "data" / "tool-calls.ndjson"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One allowed outcome of a vector: the calls as (name, arguments) and the remaining text.

    With `error`, the proxy must answer with an error.
    """

    calls: tuple[tuple[str, Any], ...] = ()
    output: str = ""
    error: bool = False


@dataclass(frozen=True, slots=True)
class Vector:
    """A test vector: one text of a model, with its allowed outcomes.

    The first value in `outcomes` is the best outcome; the other outcomes are also allowed.

    `cuts` are the offsets at which the text is cut into chunks of a stream; None means that the suite chooses the offsets.
    `statements` are the statements of the specification that decide which outcomes are allowed.
    """

    id: str
    feature: str
    why: str
    statements: tuple[str, ...]
    text: str
    cuts: tuple[int, ...] | None
    outcomes: tuple[Outcome, ...]
    verbatim: tuple[str | None, ...]

    def chunks(self, size: int) -> list[str]:
        """Return the text of the model in chunks: cut at the offsets in `cuts`, otherwise after every `size` characters.

        Size 0 means one chunk.
        """
        cuts = self.cuts if self.cuts is not None else range(size, len(self.text), size) if size else ()
        return [self.text[begin:end] for begin, end in pairwise((0, *cuts, len(self.text))) if begin < end]


def load_vectors() -> list[Vector]:
    """Return the vectors in the order of their file."""
    with open(PATH, encoding="utf-8") as file:
        return [_vector(json.loads(line)) for line in file]


def _vector(row: dict[str, Any]) -> Vector:
    filled = {name: text * times for name, (text, times) in row.get("fill", {}).items()}
    outcomes = [_outcome(each, filled) for each in (row, *row.get("or", []))]
    verbatim = tuple(call.get("verbatim") for call in row["calls"])
    cuts = tuple(row["cuts"]) if "cuts" in row else None
    text, statements = _fill(row["text"], filled), tuple(row["statements"])
    return Vector(row["id"], row["feature"], row["why"], statements, text, cuts, tuple(outcomes), verbatim)


def _outcome(row: dict[str, Any], filled: dict[str, str]) -> Outcome:
    if row.get("error"):
        return Outcome(error=True)
    calls = tuple((call["name"], _fill(call["arguments"], filled)) for call in row["calls"])
    return Outcome(calls, _fill(row["output"], filled))


def _fill(value: Any, filled: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in filled.items():
            value = value.replace(name, text)
    elif isinstance(value, dict):
        return {key: _fill(each, filled) for key, each in value.items()}
    return value
