"""Find tool calls in a text that arrives in chunks of any size.

The environment variable `PROXY_TOOL_CALLS` declares the markup (the opening and closing tags) of the calls. If the content
of a call is JSON, the call ends where the JSON ends; markup inside a JSON string does not end the call. If the content is not
JSON, the call ends at the closing markup. Text between tags that is not a call becomes text of the answer, unchanged. If
the stream ends inside a call, the incomplete call is dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from codex_replay.reference.proxy.answering.tool_calls import Piece
from codex_replay.reference.proxy.wire.text_json import DECODER, ToolCall

_ELEMENT = re.compile(r"\s*<([\w.-]+)>(.*?)</\1>\s*", re.S)


class DialectParser:
    """A parser of one markup: call `feed` with each chunk, then `close`, as with `ToolCallParser`.

    `markup` has the keys open, close, content, name and arguments.
    """

    def __init__(self, markup: Mapping[str, str]) -> None:
        self._markup = markup
        self._open, self._close = markup["open"], markup["close"]
        self._rest = ""

    def feed(self, text: str) -> list[Piece]:
        """Take the next chunk of the model's text. Return the parts of the answer that later chunks cannot change."""
        self._rest += text
        out: list[Piece] = []
        while True:
            at = self._rest.find(self._open)
            if at < 0:
                kept = next(n for n in range(len(self._open) - 1, -1, -1) if n == 0 or self._rest.endswith(self._open[:n]))
                self._write_out(out, len(self._rest) - kept)
                return out
            self._write_out(out, at)
            end = self._end()
            if end < 0:
                return out
            block, self._rest = self._rest[:end], self._rest[end:]
            out.append(self._call(block[len(self._open) : -len(self._close)]) or block)

    def close(self) -> list[Piece]:
        """End the stream."""
        rest, self._rest = self._rest, ""
        return [rest] if rest and not rest.startswith(self._open) else []

    def _write_out(self, out: list[Piece], end: int) -> None:
        if end:
            out.append(self._rest[:end])
            self._rest = self._rest[end:]

    def _end(self) -> int:
        """Return the position where the first block ends, or -1 if more text is needed."""
        begin = len(self._open)
        if self._markup["content"] == "json":
            text = self._rest[begin:]
            inside = len(text) - len(text.lstrip())
            try:
                begin += DECODER.raw_decode(text, inside)[1]
            except ValueError:
                if text[inside : inside + 1] in ("", "{"):  # incomplete
                    return -1
        at = self._rest.find(self._close, begin)
        return at + len(self._close) if at >= 0 else -1

    def _call(self, content: str) -> ToolCall | None:
        found = self._members(content)
        name = found.pop(self._markup["name"], None) if found is not None else None
        if found is None or not isinstance(name, str) or not name.strip():
            return None
        key = self._markup["arguments"]
        arguments = found if not key else found.get(key, {})
        if isinstance(arguments, str):
            return ToolCall(name.strip(), arguments)
        return ToolCall(name.strip(), json.dumps(arguments, ensure_ascii=False))

    def _members(self, content: str) -> dict[str, object] | None:
        if self._markup["content"] != "json":
            return dict(_ELEMENT.findall(content)) or None
        try:
            value = DECODER.decode(content.strip())
        except ValueError:
            return None
        return value if isinstance(value, dict) else None
