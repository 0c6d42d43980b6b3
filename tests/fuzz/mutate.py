"""How a valid input becomes a hostile one: bytes changed, JSON values swapped for others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

#: Values that a reader may not expect in the place of another.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 2**63, 10**400, -0.0, 1e308, "", "x", "\x00", "\x1b[2J\x07", "é", "\U0001f600", "\ud800"),
    *([], {}, [[]], [{}], {"": ""}, {"type": {}}, "x" * 10_000, ["x"] * 1000, "__proto__", "../../etc/passwd", "a/b?c#d%zz"),
)
#: Pieces of JSON that no writer writes.
RAW = (
    b"NaN",
    b"1e999",
    b"-",
    b'"\\ud800"',
    b'"\xff"',
    b"[" * 2000,
    b'{"a":' * 200,
    b"9" * 5000,
    b"\xef\xbb\xbf",
    b"\x00",
    b"//",
    b"'",
)


def swapped(random: Random, value: Any) -> Any:
    """Return a value with one node of it replaced, removed, repeated or renamed."""
    if not isinstance(value, dict | list) or not value or random.random() < 0.15:
        return random.choice(VALUES)
    if isinstance(value, list):
        items = list(value)
        at = random.randrange(len(items))
        how = random.random()
        if how < 0.15:
            del items[at]
        elif how < 0.3:
            items.insert(at, items[at])
        else:
            items[at] = swapped(random, items[at])
        return items
    fields = dict(value)
    key = random.choice(list(fields))
    how = random.random()
    if how < 0.15:
        del fields[key]
    elif how < 0.25:
        fields[random.choice(["", "x", "type", "\x1b", "é", *fields])] = fields[key]
    else:
        fields[key] = swapped(random, fields[key])
    return fields


def json_text(random: Random, value: Any, times: int = 3) -> bytes:
    """Return the JSON text of a value that was swapped some times, and sometimes broken after that."""
    for _ in range(random.randint(1, times)):
        value = swapped(random, value)
    text = json.dumps(value, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    return damaged(random, text) if random.random() < 0.2 else text


def damaged(random: Random, data: bytes, pieces: Sequence[bytes] = RAW) -> bytes:
    """Return bytes with some of them changed, cut out, repeated, or something put between them."""
    out = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(out) + 1)
        how = random.random()
        if how < 0.3:
            out[at:at] = random.choice(pieces)
        elif how < 0.5 and out:
            out[at - 1 : at] = bytes([random.randrange(256)])
        elif how < 0.7:
            del out[at : at + random.choice((1, 2, 16, 200))]
        elif how < 0.85:
            out[at:at] = out[at : at + random.choice((1, 16, 200))] * random.choice((1, 2, 50))
        else:
            del out[at:]
    return bytes(out)
