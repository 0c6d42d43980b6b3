"""Find the first fault in a text that is not TOML, in the words of the real server's parser.

The parser first reads the structure of the whole text, and afterwards the keys and values in their order. Therefore the parser
reports a wrong structure before a wrong key or value, even if the key or value comes earlier in the text. The messages were
observed with the real 0.92.0. Wrong dates and other rare faults are not found.
"""

from __future__ import annotations

import re
from typing import Any

NO_KEY = "unquoted keys cannot be empty, expected letters, numbers, `-`, `_`"
_UNQUOTED = "string values must be quoted, expected literal string"
_ESCAPES = 'missing escaped value, expected `b`, `e`, `f`, `n`, `r`, `\\`, `"`, `x`, `u`, `U`'
_AFTER = "unexpected key or value, expected newline, `#`"
_GAP = "`_` may only go between digits"
_TOKEN = re.compile(
    r"""(?P<space>[ \t]+)|(?P<line>\r?\n)|(?P<note>\#[^\n]*)|(?P<sign>[.=,\[\]{}])
    |(?P<text>\"{3}(?:[^\\]|\\.)*?(?:\"{3,5}|\Z)|'{3}(?:.|\n)*?(?:'{3,5}|\Z)|\"(?:[^"\\\n]|\\[^\n])*(?:\"|(?=\n)|\\?\Z)|'[^'\n]*'?)
    |(?P<atom>[^ \t\n\#.,=\[\]{}]+)""",
    re.VERBOSE | re.DOTALL,
)
_DIGITS = {"x": ("hexadecimal", "[0-9a-fA-F_]*"), "o": ("octal", "[0-7_]*"), "b": ("binary", "[01_]*")}
_TYPES = ((bool, "boolean"), (int, "integer"), (float, "float"), (str, "string"), (list, "array"), (dict, "inline table"))
#: A kind, the offsets of the first character and behind the last, and the text; "" is a key or value that is missing.
Token = tuple[str, int, int, str]


class Fault(Exception):
    """A message, and the offsets of the first character of the fault and behind the last."""

    def __init__(self, message: str, first: int, end: int | None = None) -> None:
        super().__init__(message)
        self.first, self.end = first, first + 1 if end is None else end


class Tables(dict[str, Any]):
    """A table; `open_` is True if a later head may still define the table."""

    open_ = False


def first_fault(text: str) -> Fault | None:
    """Return the first fault in a text, or None if the text has no fault that is known here."""
    try:
        _insert(_Structure(text).document())
    except Fault as fault:
        return fault
    return None


class _Structure:
    """Reads the structure of a text: its heads, keys and values, as tokens."""

    def __init__(self, text: str) -> None:
        self.tokens: list[Token] = []
        for match in _TOKEN.finditer(text):
            kind = match[0] if match.lastgroup == "sign" else match.lastgroup or ""
            if kind != "space":
                self.tokens.append((kind, match.start(), match.end(), match[0]))
        self.tokens.append(("end", len(text), len(text), ""))
        self.at = 0

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0]

    @property
    def place(self) -> int:
        return self.tokens[self.at][1]

    def take(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def skip_lines(self) -> str:
        while self.kind in ("line", "note"):
            self.at += 1
        return self.kind

    def document(self) -> list[tuple[str, list[Token], Any]]:
        found = []
        while (kind := self.skip_lines()) != "end":
            if kind == "]":
                raise Fault("missing table open, expected `[`", self.place)
            if kind in ("{", "}", ","):
                raise Fault("invalid key-value pair, expected key", self.place)
            found.append(self.head() if kind == "[" else self.pair())
            if self.kind not in ("line", "note", "end"):
                raise Fault(_AFTER, self.place)
        return found

    def head(self) -> tuple[str, list[Token], Any]:
        begin = self.take()[2]
        double = self.kind == "[" and self.place == begin
        self.at += double
        keys = self.keys()
        end = self.tokens[self.at - 1][2]
        if self.kind != "]":
            name, sign = ("array table", "`]]`") if double else ("table", "`]`")
            raise Fault(f"unclosed {name}, expected {sign}", end)
        end = self.take()[2]
        if double and (self.kind != "]" or self.place != end):
            raise Fault("unclosed array table, expected `]`", end)
        self.at += double
        return "[[" if double else "[", keys, None

    def keys(self) -> list[Token]:
        keys = []
        while True:
            keys.append(self.take() if self.kind in ("atom", "text") else ("", self.place, self.place, ""))
            if self.kind != ".":
                return keys
            self.at += 1

    def pair(self) -> tuple[str, list[Token], Any]:
        keys = self.keys()
        if self.kind != "=":
            raise Fault("key with no value, expected `=`", self.place)
        self.at += 1
        if self.kind == "=":
            raise Fault("extra `=`, expected nothing", self.place)
        return "=", keys, self.value()

    def value(self) -> Any:
        if self.kind in ("[", "{"):
            return self.array() if self.take()[0] == "[" else self.inline()
        if self.kind in ("]", "}"):
            name, sign = ("array", "`[`") if self.kind == "]" else ("inline table", "`{`")
            raise Fault(f"missing {name} opening, expected {sign}", self.place)
        if self.kind not in ("atom", "."):
            return self.take() if self.kind == "text" else ("", self.place, self.place, "")
        begin = self.at
        while self.kind in ("atom", "."):
            self.at += 1
        first, last = self.tokens[begin], self.tokens[self.at - 1]
        text = "".join(token[3] for token in self.tokens[begin : self.at])
        return "atom", first[1], last[2], text if len(text) == last[2] - first[1] else f"{text} with spaces"

    def array(self) -> list[Any]:
        found: list[Any] = []
        full = False
        while (kind := self.skip_lines()) != "]":
            if kind == "end":
                raise Fault("unclosed array, expected `]`", self.place)
            if kind == "=":
                raise Fault("unexpected `=` in array, expected value, `]`", self.place)
            if kind == "," and not full:
                raise Fault("extra comma in array, expected value", self.place)
            if kind != "," and full:
                raise Fault("missing comma between array elements, expected `,`", self.place)
            if kind == ",":
                self.at += 1
            else:
                found.append(self.value())
            full = kind != ","
        self.at += 1
        return found

    def inline(self) -> dict[str, Any]:
        found: list[tuple[str, list[Token], Any]] = []
        while self.skip_lines() != "}":
            if self.refuse("key", ",", "]") in ("[", "{"):
                raise Fault("missing key for inline table element, expected key", self.place)
            keys = self.keys()
            self.skip_lines()
            if self.refuse("`=`", ",", "]") not in ("=", "}"):
                raise Fault("missing assignment between key-value pairs, expected `=`", self.place)
            if self.kind == "=":
                self.at += 1
                self.skip_lines()
                if self.refuse("value", ",", "=") != "}":
                    found.append(("=", keys, self.value()))
            self.skip_lines()
            if self.refuse("`,`", "]", "=") in ("[", "{"):
                raise Fault("missing key for inline table element, expected `,`", self.place)
            if self.kind not in (",", "}"):
                raise Fault("missing comma between key-value pairs, expected `,`", self.place)
            self.at += self.kind == ","
        self.at += 1
        return {"pairs": found}

    def refuse(self, wanted: str, *signs: str) -> str:
        """Refuse signs, and the end of the text, in an inline table. Return the kind of the token."""
        texts = {",": "extra comma in inline table", "]": "invalid inline table element"}
        if self.kind == "end":
            raise Fault("unclosed inline table, expected `}`", self.place)
        if self.kind in signs:
            raise Fault(f"{texts.get(self.kind, 'extra assignment between key-value pairs')}, expected {wanted}", self.place)
        return self.kind


def _insert(statements: list[tuple[str, list[Token], Any]]) -> Tables:
    """Put all values into their tables."""
    root = table = Tables()
    for kind, tokens, value in statements:
        names = [_key(token) for token in tokens]
        parent = root if kind != "=" else table
        for name, token in zip(names[:-1], tokens, strict=False):
            inner = parent.setdefault(name, Tables())
            if isinstance(inner, list) and inner and isinstance(inner[-1], Tables):
                inner = inner[-1]
            if not isinstance(inner, Tables):
                kind_ = next((text for type_, text in _TYPES if isinstance(inner, type_)), "datetime")
                raise Fault(f"cannot extend value of type {kind_} with a dotted key", token[1], token[2])
            inner.open_ = inner.open_ or (kind != "=" and not inner)
            parent = inner
        made = _value(value) if kind == "=" else Tables()
        last, old = names[-1], parent.get(names[-1])
        if kind == "[[" and (old is None or getattr(old, "open_", None) == "array"):
            old = parent.setdefault(last, _Array())
            old.append(made)
        elif kind == "[" and isinstance(old, Tables) and old.open_:
            made, old.open_ = old, False
        elif last in parent:
            raise Fault("duplicate key", tokens[-1][1], tokens[-1][2])
        else:
            parent[last] = made
        table = made if kind != "=" else table
    return root


class _Array(list[Any]):
    """An array of tables."""

    open_ = "array"


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(item) for item in value]
    if isinstance(value, dict):
        return dict(_insert(value["pairs"]))
    kind, first, end, text = value
    if kind == "text":
        return _text(value)
    if not kind:
        raise Fault(_UNQUOTED, first)
    return _scalar(text, first, end)


def _key(token: Token) -> str:
    kind, first, _, text = token
    if not kind:
        raise Fault(NO_KEY, first)
    if kind == "text":
        return _text(token)
    if (bad := re.search(r"[^A-Za-z0-9_-]", text)) is not None:
        raise Fault("invalid unquoted key, expected letters, numbers, `-`, `_`", first + bad.start())
    return text


def _text(token: Token) -> str:
    _, first, end, text = token
    quote, long = text[0], text[:3] in ('"""', "'''")
    basic, size = quote == '"', 3 if long else 1
    name = f"{'multi-line ' if long else ''}{'basic' if basic else 'literal'} string"
    if len(text) < 2 * size or not text.endswith(quote * size):
        raise Fault(f"invalid {name}, expected `{quote}`", end)
    wanted = f"non-{'double' if basic else 'single'}-quote visible characters{', `' + chr(92) + '`' if basic else ''}"
    wanted = ("`\\`, characters" if basic else "characters") if long else wanted
    content, at = text[size:-size], 0
    while at < len(content):
        char, place = content[at], first + size + at
        at += 1
        if (char < " " and char not in ("\t\r\n" if long else "\t")) or char == "\x7f":
            raise Fault(f"invalid {name}, expected {wanted}", place)
        if not basic or char != "\\":
            continue
        count = {"x": 2, "u": 4, "U": 8}.get(content[at : at + 1])
        if count is not None:
            digits = re.match(rf"[0-9A-Fa-f]{{0,{count}}}", content[at + 1 :])
            found = digits[0] if digits is not None else ""
            if len(found) < count:
                words = "too few unicode value digits, expected unicode hexadecimal value"
                raise Fault(words, place + 2 + len(found))
            if (code := int(found, 16)) > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise Fault("invalid value, expected unicode hexadecimal value", place + 2)
            at += count
        elif content[at : at + 1] not in tuple('befnrt\\"') and not (long and content[at : at + 1].isspace()):
            raise Fault(_ESCAPES, place + 1)
        at += 1
    return content


def _scalar(text: str, first: int, end: int) -> Any:
    body, at = (text[1:], first + 1) if text[0] in "+-" else (text, first)
    if body[:1] in ("+", "-") and at > first:
        raise Fault("redundant numeric sign, expected nothing", at)
    for word, kind in (("inf", "float"), ("nan", "float"), ("true", "boolean"), ("false", "boolean")):
        if body[:1].lower() == word[0] and (kind == "float" or at == first):
            if body != word:
                raise Fault(f"invalid {kind}, expected `{word}`", at, end)
            return 0.0 if kind == "float" else True
    if body[:1] == "_":
        raise Fault(f"{_GAP}, expected nothing", at)
    if body[:1] == ".":
        raise Fault("invalid mantissa, expected digits", at)
    if not body[:1].isdecimal() or not body.isascii():
        raise Fault(_UNQUOTED, first, end)
    return _number(body, at, first, end)


def _number(body: str, at: int, first: int, end: int) -> Any:
    if body[:1] == "0" and (found := _DIGITS.get(body[1:2].lower())):
        name, digits = found
        if body[1].isupper():
            raise Fault(f"radix must be lowercase, expected `0{body[1].lower()}`", at, at + 2)
        if len(body) == 2:
            raise Fault("integer number overflowed", at, end)
        if body[2] == "_":
            raise Fault(f"{_GAP}, expected nothing", at)
        match = re.match(digits, body[2:])
        if match is not None and match.end() < len(body) - 2:
            raise Fault(f"invalid {name} number", at + 2 + match.end())
        return 0
    if re.fullmatch(r"[0-9][0-9:TtZz .+-]*", body) and ("-" in body[1:] or ":" in body) and "e" not in body.lower():
        return None  # a date or a time
    if not re.fullmatch(r"[0-9_.]+(?:[eE][+-]?[0-9_.]*)?", body):
        raise Fault(_UNQUOTED, first, end)
    whole = re.match(r"[0-9_]+", body)
    size = whole.end() if whole is not None else 0
    if body[0] == "0" and size > 1:
        raise Fault("unexpected leading zero, expected nothing", at)
    _gaps(body, 0, size, at)
    if body[size : size + 1] == ".":
        size = _part(body, size + 1, "fraction", at)
    if body[size : size + 1] in ("e", "E"):
        size = _part(body, size + 1 + (body[size + 1 : size + 2] in ("+", "-")), "exponent", at)
    if size < len(body):
        raise Fault("invalid float, expected nothing", at + size, end)
    return 0 if "." not in body and "e" not in body.lower() else 0.0


def _part(body: str, begin: int, name: str, at: int) -> int:
    found = re.compile(r"[0-9_]*").match(body, begin)
    end = found.end() if found is not None else begin
    if end == begin:
        raise Fault(f"invalid {name}, expected digits", at + begin)
    _gaps(body, begin, end, at)
    return end


def _gaps(body: str, begin: int, end: int, at: int) -> None:
    """Refuse a `_` that is not between digits in a part of a number."""
    for place in range(begin, end):
        if body[place] == "_":
            if place == begin or (place + 1 < end and body[place + 1] == "_" and (place := place + 1)):
                raise Fault(_GAP, at + place)
            if place + 1 == len(body):
                raise Fault(f"{_GAP}, expected nothing", at + place)
            if place + 1 == end:
                raise Fault(_GAP, at + place)
