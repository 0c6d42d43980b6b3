"""Replace the secrets in a text by placeholders, and leave every other byte unchanged.

A redaction repeats until the finders find no further secret, and the finders never treat a placeholder as a secret. A
second redaction of the same text therefore changes nothing, even with a new Redactor. Placeholders are plain ASCII without
quotes or backslashes, so a JSON text is still valid JSON after redaction, at any depth of nesting.

Give the redactor whole lines, events and bodies, because it cannot find a secret that is split over two chunks. At the end of a
recording, the module `streamed` joins the chunks that a model streamed, and redacts them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from codex_replay.core.redact.literals import own_finders
from codex_replay.core.redact.named import secret_parts
from codex_replay.core.redact.placeholders import Placeholders
from codex_replay.core.redact.rules import kind_of_name, weak_kind_of_name
from codex_replay.core.redact.shapes import FINDERS
from codex_replay.core.redact.text import BLOCK, Shadow, Shortened, Span, Unquoted, late, middles
from codex_replay.core.redact.triggers import Triggers
from codex_replay.core.wire import json_text

_ROUNDS = 32  # each round leaves less to find; more than three were never seen
LONG_WORD = 2 * BLOCK
_PERCENT_LEVELS = 2  # an address in a query of an address
_ODD_ESCAPE = late(rb"\\u00[2-7]")  # of a character that needs no escape
_ENCODED = late(rb"[^\s\"'\\<>]+")
_USER_NAMES = ("USER", "LOGNAME", "USERNAME")
_ROOT = late(rb"(\\*/|%2[Ff])(root)")
_ASSIGNMENT = late(r"(-{0,2}[A-Za-z_][\w.-]*)=(.*)\Z", re.DOTALL)


class Redactor:
    """Replace secrets by placeholders; one Redactor always replaces the same secret by the same placeholder.

    `paths` maps directories to their replacements, such as `{"/tmp/case-x/home": "/home/user"}`; the longest path wins, and
    only whole path segments match. `literals` maps known secrets to their replacements; they match anywhere, escaped or
    not. If `homes` is false, the names of home directories are not redacted. Raises `ValueError` if a replacement contains
    a text that would itself be replaced.
    """

    def __init__(
        self, *, paths: Mapping[str, str] | None = None, literals: Mapping[str, str] | None = None, homes: bool = True
    ) -> None:
        self._homes = homes
        self._placeholders = Placeholders()
        self._literals = tuple(own_finders(literals or {}, "literal"))
        self._triggers = Triggers(FINDERS, (*self._literals, *own_finders(paths or {}, "path")))
        for old, new in {**(paths or {}), **(literals or {})}.items():
            if old != new and self._find(new.encode()):
                raise ValueError(
                    f"{old!r} cannot be replaced by {new!r}: the replacement itself looks like a secret; choose another "
                    f"replacement"
                )

    def redact(self, data: bytes) -> bytes:
        """Return any text (a JSON line, a body, an SSE event, other output) with its secrets replaced and all other bytes
        unchanged.

        Returns the same object if the text has no secrets.
        """
        reserved = False
        for _ in range(_ROUNDS):
            spans = self._find(data)
            if not spans:
                break
            if not reserved:
                self._placeholders.reserve(data)
                reserved = True
            data = self._splice(data, spans)
        return data

    def findings(self, data: bytes) -> list[tuple[str, int, int]]:
        """Return what `redact` would replace: (kind, start, end) in bytes, in order, without overlaps."""
        return [(span.kind, span.start, span.end) for span in self._find(data)]

    def edits(self, data: bytes) -> list[tuple[int, int, bytes]]:
        """Return the edits that one pass of `redact` makes: (start, end, replacement), in order.

        `edits` is for callers that replace the secrets themselves.
        """
        spans = self._find(data)
        if spans:
            self._placeholders.reserve(data)
        return [(s.start, s.end, self._made(s, data)) for s in spans]

    def value(self, value: Any) -> Any:
        """Return a decoded JSON value with its secrets replaced; the result is the same as redacting its JSON text and decoding
        that.

        Raises `ValueError` for a value that cannot be written as JSON.
        """
        try:
            text = json_text.dumps(value)
        except ValueError:  # lone surrogates have a JSON form, though not one in UTF-8
            return json.loads(self.redact(json.dumps(value, separators=(",", ":"), allow_nan=False).encode()))
        redacted = self.redact(text)
        return value if redacted is text else json_text.loads(redacted)

    def text(self, text: str) -> str:
        """Return a text with its secrets replaced.

        Surrogate escapes (Python's form of bytes that are not UTF-8) stay unchanged. Any other lone surrogate becomes a JSON
        escape.
        """
        return self.redact(_bytes(text)).decode("utf-8", "surrogateescape")

    def headers(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return HTTP headers with their secrets replaced: by name (authorization, cookie, ...) and by content."""
        return [(name, self._named(name, value, strict=True)) for name, value in headers]

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return an environment with its secrets replaced: by name (OPENAI_API_KEY, *_TOKEN, *SECRET*, ...) and by content."""
        return {name: "user" if name in _USER_NAMES and value else self._named(name, value) for name, value in environ.items()}

    def argv(self, argv: Iterable[str]) -> list[str]:
        """Return a command line with its secrets replaced: `--api-key X`, `--token=X`, `-c key=value`, `-H header`, ..."""
        result: list[str] = []
        before = ""
        for argument in argv:
            result.append(self._argument(before, argument))
            before = argument
        return cast("list[str]", self.value(result))  # a secret that an earlier argument reveals: `-p X`

    def _argument(self, before: str, argument: str) -> str:
        if before in ("-H", "--header") and ":" in argument:
            name, colon, value = argument.partition(":")
            space = value[: len(value) - len(value.lstrip())]
            return name + colon + space + self._named(name, value.lstrip())
        if before.startswith("--") and "=" not in before and not argument.startswith("-"):
            return self._named(before, argument)
        assignment = _ASSIGNMENT.match(argument)
        if assignment is not None:
            value = assignment[2]
            quote = value[:1] if len(value) > 1 and value[:1] in "\"'" and value.endswith(value[:1]) else ""
            inner = value[len(quote) : len(value) - len(quote)]
            redacted = self._named(assignment[1], inner)
            if redacted != inner:
                return f"{assignment[1]}={quote}{redacted}{quote}"
        return self.text(argument)

    def _named(self, name: str, value: str, *, strict: bool = False) -> str:
        """Return the value with its secrets replaced, as if `name` and `value` were a member of a JSON object."""
        kind = kind_of_name(name) or (None if strict else weak_kind_of_name(name))
        if kind is not None:
            data = _bytes(value)
            self._placeholders.reserve(data)
            spans = list(secret_parts(data, kind, 0, len(data)))
            value = self._splice(data, spans).decode("utf-8", "surrogateescape")
        return self.text(value)

    def _find(self, data: bytes) -> list[Span]:
        """Return the spans of all secrets in `data`, in order and without overlaps."""
        spans = self._find_all(data) if len(data) < LONG_WORD else self._find_around_words(data)
        return _merged(spans) if len(spans) > 1 else spans

    def _find_around_words(self, data: bytes) -> list[Span]:
        """Return all secrets in a text that may have very long words.

        Inside a very long word, only the user's literals are searched for.
        """
        if not (left_out := middles(data)):
            return self._find_all(data)
        view = Shortened(data, left_out)
        spans = [span._replace(start=view.raw(span.start), end=view.raw(span.end)) for span in self._find_all(view.text)]
        low = data.lower() if self._literals else b""
        return spans + [span for finder in self._literals for span in finder.find(data, low)]

    def _find_all(self, data: bytes) -> list[Span]:
        spans = self._find_plain(data)
        if b"%" in data:
            spans += self._find_encoded(data, _PERCENT_LEVELS)
        return spans

    def _find_encoded(self, data: bytes, levels: int) -> list[Span]:
        """Return the secrets in one value of a query or a form that are visible only after its percent escapes are decoded."""
        if not Unquoted.ESCAPE.search(data):
            return []
        view = Unquoted(data)
        found = self._find_plain(view.text)
        if levels > 1:
            found += self._find_encoded(view.text, levels - 1)
        found = [span._replace(start=view.raw(span.start), end=view.raw(span.end)) for span in found]
        # Such a value has no blanks and quotes; a span with some is not of one.
        return [span for span in found if _ENCODED.fullmatch(data, span.start, span.end)]

    def _find_plain(self, data: bytes) -> list[Span]:
        shadow = Shadow(data) if b"\\" in data and (b"\\/" in data or _ODD_ESCAPE.search(data)) else None
        text = data if shadow is None else shadow.text
        low = text.lower()
        spans = [span for find in self._triggers.finds(low) for span in find(text, low) if self._homes or span.kind != "home"]
        if not spans:
            return spans
        if shadow is not None:
            spans = [span._replace(start=shadow.raw(span.start), end=shadow.raw(span.end)) for span in spans]
        return spans

    def _splice(self, data: bytes, spans: list[Span]) -> bytes:
        pieces: list[bytes] = []
        at = 0
        for span in spans:
            pieces += (data[at : span.start], self._made(span, data))
            at = span.end
        pieces.append(data[at:])
        return b"".join(pieces)

    def _made(self, span: Span, data: bytes) -> bytes:
        return span.fixed if span.fixed is not None else self._replacement(span.kind, data[span.start : span.end])

    def _replacement(self, kind: str, secret: bytes) -> bytes:
        if kind == "home":
            root = _ROOT.fullmatch(secret)
            name = self._placeholders.home(root[2] if root else secret)
            return root[1] + b"home" + root[1] + name if root else name
        made = self._placeholders.of(kind, secret)
        # An address in a query keeps its percent sign, so that the query stays one.
        return made.replace(b"@", b"%40") if kind == "email" and b"%40" in secret else made


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate, as JSON may escape one
        return text.encode("utf-8", "backslashreplace")


def _merged(spans: list[Span]) -> list[Span]:
    """Merge overlapping spans. If one span contains another, only the outer span is kept.

    Two spans that overlap in part become one span that covers both, so that no part of a secret remains.
    """
    spans.sort(key=lambda span: (span.start, -span.end))
    result: list[Span] = []
    for span in spans:
        last = result[-1] if result else None
        if last is None or span.start >= last.end:
            result.append(span)
        elif span.end > last.end:
            kind = span.kind if last.fixed is not None or last.kind == "home" else last.kind
            result[-1] = Span(last.start, span.end, kind)
    return result
