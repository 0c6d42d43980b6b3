"""Read and write JSON for three kinds of readers: the app-server, HTTP clients, and the model.

The app-server silently drops a line that it cannot parse. A lone surrogate makes a line unreadable, so a replacement
character takes its place in a line for the app-server. A JSON text for an HTTP client is ASCII. Therefore U+2028 does not
split a line, and a lone surrogate stays an escape.
"""

from __future__ import annotations

import json
import re
from typing import Any

SURROGATE = re.compile("[\ud800-\udfff]")


def loads(data: bytes | str) -> Any:
    """Decode a JSON text; raises ValueError for invalid JSON, including NaN and Infinity."""
    if isinstance(data, bytes):
        data = data.decode(json.detect_encoding(data), "surrogatepass")
    return _DECODER.decode(data)


def for_client(value: Any) -> bytes:
    """Encode a value as JSON for an HTTP client, with only ASCII characters."""
    return _ASCII.encode(value).encode("ascii")


def text(value: Any) -> str:
    """Encode a value as compact JSON without escapes.

    The schemas in the instructions for the model are compact JSON without escapes.
    """
    return _ANY.encode(value)


def for_server(value: Any) -> bytes:
    """Encode a value as one line of JSON for the app-server, with a line end."""
    return SURROGATE.sub("\ufffd", text(value)).encode() + b"\n"


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


# Made once: `json.loads` and `json.dumps` make them again for each text.
_DECODER = json.JSONDecoder(parse_constant=_refuse)
_ASCII = json.JSONEncoder(separators=(",", ":"))
_ANY = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
