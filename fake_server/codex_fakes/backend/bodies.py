"""Decode the body of a request within the limits, without delaying other clients, and parse only the new parts of it.

Codex repeats the conversation in each request: 323 of 362 successive requests in the packaged recordings append items to `input`,
and 279 of these 362 change nothing else.
"""

from __future__ import annotations

import re
from typing import Any

from codex_fakes.backend.exchange import Exchange
from codex_fakes.backend.limits import Limits
from codex_replay.core.wire.client_json import MAX_TOKENS, read
from codex_replay.core.wire.content_encoding import IDENTITY, TooLarge, decode
from codex_replay.core.wire.json_text import NotJson

#: Bodies up to these sizes are decoded at once, which takes a few milliseconds at most; others in a thread, one after another.
SENT, DECODED = 64 * 1024, 1024 * 1024


async def decoded(exchange: Exchange, limits: Limits) -> bytes:
    """Return the decoded body of a request. Raises `BadEncoding`, or `TooLarge` if the decoded body is over the limit."""
    request = exchange.request
    encoding = request.header("content-encoding")
    if encoding is None or encoding.strip().lower() in IDENTITY:
        return request.body
    plain = None
    if len(request.body) <= SENT:
        try:
            plain = decode(request.body, encoding, min(DECODED, limits.body))
        except TooLarge:
            if limits.body <= DECODED:
                raise
    if plain is None:
        from codex_fakes.backend.loop.threads import in_thread  # only for long bodies: it would slow every start

        plain = await in_thread(decode, request.body, encoding, limits.body)
    if not exchange.take(len(plain)):
        raise TooLarge("The request bodies of all clients together are too long at the moment: retry later.")
    return plain


#: A body of so many bytes is read in parts: a shorter one is not worth it, and no part of a longer one could exceed the limits of
#: `read` if the whole does not.
IN_PARTS = range(4096, MAX_TOKENS)
#: The items of `input` are remembered in so many parts at most, one for each request of a conversation.
MOST_PARTS = 32
_INPUT = re.compile(rb'"input"\s*:\s*\[')
_COMMA = ord(",")
#: A text and its value.
Part = tuple[bytes, Any]


class Reader:
    """Read the long request bodies of a session in parts, and remember the parts of the last body.

    A body is divided into a head, which ends in the opening bracket of `input`, the items of `input`, and a tail, which
    begins with the closing bracket. Each part is read as a JSON text, with the brackets that it lacks. If all parts are
    valid, the body is valid and has their members; otherwise the whole body is read. Later bodies share the values of equal
    parts, so nobody may change the values.
    """

    def __init__(self) -> None:
        self._head: Part = (b"", {})
        self._items: list[Part] = []
        self._tail: Part = (b"", {})

    def read(self, data: bytes) -> tuple[dict[str, Any] | None, tuple[bytes, ...], int]:
        """Return the value of a request body, its parts, and the size of the new parts.

        The value is None if the body must be parsed as a whole.
        """
        try:
            new = self._divide(data) if len(data) in IN_PARTS else None
        except NotJson:
            new = None
        if new is None:
            return None, (), 0
        (head, before), items, (tail, after) = self._head, self._items, self._tail
        value = {**before, "input": [item for _, part in items for item in part], **after}
        return value, (head, *(text for text, _ in items), tail), new

    def _divide(self, data: bytes) -> int | None:
        """Divide a body into remembered and new parts; return the size of the new parts, or None if the body has another form."""
        head, tail = self._head[0], self._tail[0]
        new = 0
        if not head or not data.startswith(head):
            at = data.find(b'"input"')
            found = _INPUT.match(data, at) if at > 0 and data[at - 1] in b"{, \n" else None  # an escaped quote begins no key
            if found is None:
                return None
            head = data[: found.end()]
            self._head = (head, read(head + b"]}"))
            new += len(head)
        if not tail or not data.endswith(tail) or len(head) + len(tail) > len(data):
            at = data.rfind(b'"tools"', len(head))
            end = data.rfind(b"]", len(head), max(at, 0))
            if end < 0 or data[end + 1 : at].strip(b" \t\n\r") != b",":
                return None
            tail = data[end:]
            self._tail = (tail, read(b"{" + data[at:]))
            new += len(tail)
        return new + self._divide_items(data, len(head), len(data) - len(tail))

    def _divide_items(self, data: bytes, begin: int, end: int) -> int:
        """Divide the items between `begin` and `end`: keep the remembered items at their beginning, and read the rest.

        Return the size of the rest.
        """
        kept: list[Part] = []
        at, new = begin, 0
        for text, value in self._items:
            after = at + len(text)
            if not data.startswith(text, at, end) or (after < end and data[after] != _COMMA):
                if (part := _shared(text, data[at:end], after_other=bool(kept))) is not None:
                    kept.append(part)
                    at, new = at + len(part[0]), len(part[0])
                break
            kept.append((text, value))
            at = after
        if at < end and len(kept) >= MOST_PARTS:
            kept, at, new = [], begin, 0
        self._items = kept
        if rest := data[at:end]:
            kept.append((rest, _items(rest, after_other=bool(kept))))
        return new + len(rest)


def _items(text: bytes, *, after_other: bool) -> list[Any]:
    """Return the items in a part of the text of `input`; raises `NotJson` for any other text.

    With `after_other`, the part begins with the comma after the item before it.
    """
    found = read(b"[[%b]]" % (text[1:] if after_other else text))
    if len(found) != 1 or not found[0]:  # "1],[2", or a comma and nothing
        raise NotJson("it is not a list of items")
    items: list[Any] = found[0]
    return items


def _shared(text: bytes, other: bytes, *, after_other: bool) -> Part | None:
    """Return the items that both texts begin with, if each text has another item after them.

    Return None if there are no such items.
    """
    equal, limit = 0, min(len(text), len(other))
    while equal < limit:
        middle = (equal + limit + 1) // 2
        if other.startswith(text[equal:middle], equal):
            equal = middle
        else:
            limit = middle - 1
    end = text.rfind(b"},", 0, equal) + 1
    try:
        return (text[:end], _items(text[:end], after_other=after_other)) if end else None
    except NotJson:  # it is the end of another object
        return None
