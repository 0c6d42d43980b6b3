"""Read JSON into a type like Rust's serde_json, with the same error messages and positions.

The real server reads the arguments of tool calls with serde_json, and sends serde_json's error messages to the model. One
pass over the bytes reads the text, as in serde_json, so that the first error of syntax or type has the same line and column
(in bytes). The expected type is given by a name, the form: string, boolean, u64, or a `struct` or `enum` of the table
forms.json. In a form, `?` marks a value that may be null or absent, and `[form]` marks a list.
"""

from __future__ import annotations

from codex_replay.core.wire.json_text import dumps, loads
from codex_replay.core.wire.serde import float_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

_SPACE = b" \t\n\r"
_DIGITS = b"0123456789"
_ESCAPES = b'"\\/bfnrtu'
_EXPECTED = {"string": "a string", "boolean": "a boolean", "u64": "u64"}
_DEPTH = 127


class Mismatch(ValueError):
    """The text is not JSON, or has a different form than expected; the error text is that of serde_json."""


class _Unplaced(ValueError):
    """A type error whose position is the end of the wrong value."""


def read(text: str, form: str, table: Mapping[str, Any]) -> Any:
    """Return the value of a JSON text that must have the given form; raises `Mismatch` if it does not."""
    return _Reader(text.encode("utf-8", "surrogatepass"), table).whole(form)


def read_any(text: str) -> Any:
    """Return the value of a JSON text of any form; raises `Mismatch` if the text is not JSON."""
    return _Reader(text.encode("utf-8", "surrogatepass"), {}).whole("*")


class _Reader:
    def __init__(self, data: bytes, table: Mapping[str, Any]) -> None:
        self.data, self.table, self.at, self.depth = data, table, 0, 0

    def whole(self, form: str) -> Any:
        value = self.value(form)
        if self.peek() is not None:
            self.fail("trailing characters", 1)
        return value

    # -- places

    def fail(self, why: str, ahead: int = 0) -> NoReturn:
        """Raise an error at the position of the last byte that was read; with `ahead` = 1, at the next byte."""
        seen = self.data[: min(len(self.data), self.at + ahead)]
        raise Mismatch(f"{why} at line {seen.count(10) + 1} column {len(seen) - seen.rfind(10) - 1}")

    def peek(self) -> int | None:
        """Skip white space; return the next byte."""
        while self.at < len(self.data) and self.data[self.at] in _SPACE:
            self.at += 1
        return self.data[self.at] if self.at < len(self.data) else None

    # -- values

    def value(self, form: str) -> Any:
        start = self.peek()
        if start is None:
            self.fail("EOF while parsing a value", 1)
        try:
            if form[-1:] == "?":
                if start == ord("n"):
                    self.word(b"null")
                    return None
                form = form[:-1]
            return self._value(form, start)
        except _Unplaced as wrong:
            self.fail(str(wrong))

    def _value(self, form: str, start: int) -> Any:
        if form == "*":
            return self.any(start)
        if form[0] == "[":
            return self.list(form[1:-1]) if start == ord("[") else self.unlike(start, "a sequence")
        if form in self.table.get("enums", ()):
            return self.choice(form, start)
        if form in self.table.get("structs", ()):
            if start == ord("{"):
                return self.struct(form)
            return self.elements(form) if start == ord("[") else self.unlike(start, f"struct {form}")
        if (form == "string" and start == ord('"')) or (form == "boolean" and start in b"tf"):
            return self.any(start)
        if form == "u64" and (start == ord("-") or start in _DIGITS):
            number = self.number()
            if type(number) is float:
                raise _Unplaced(f"invalid type: {_named(number)}, expected u64")
            if number < 0:
                raise _Unplaced(f"invalid value: {_named(number)}, expected u64")
            return number
        return self.unlike(start, _EXPECTED[form])

    def unlike(self, start: int, expected: str) -> NoReturn:
        """Raise the error for a value of the wrong type; a word, a number or a string is first read to its end."""
        if start in b"[{":
            raise _Unplaced(f"invalid type: {'sequence' if start == ord('[') else 'map'}, expected {expected}")
        if start not in b'"-tfn' and start not in _DIGITS:
            self.fail("expected value", 1)
        raise _Unplaced(f"invalid type: {_named(self.any(start))}, expected {expected}")

    def any(self, start: int) -> Any:
        for word, value in ((b"null", None), (b"true", True), (b"false", False)):
            if start == word[0]:
                self.word(word)
                return value
        if start == ord('"'):
            return self.string()
        if start == ord("-") or start in _DIGITS:
            return self.number()
        if start == ord("["):
            return self.list("*")
        if start != ord("{"):
            self.fail("expected value", 1)
        return self.map()

    def word(self, word: bytes) -> None:
        self.at += 1
        for letter in word[1:]:
            if self.at >= len(self.data):
                self.fail("EOF while parsing a value")
            self.at += 1
            if self.data[self.at - 1] != letter:
                self.fail("expected ident")

    def number(self) -> int | float:
        begin = self.at
        if self.data[self.at] == ord("-"):
            self.at += 1
            if self.at >= len(self.data):
                self.fail("EOF while parsing a value")
            if self.data[self.at] not in _DIGITS:
                self.at += 1
                self.fail("invalid number")
        if self.data[self.at] == ord("0"):
            self.at += 1
            if self.at < len(self.data) and self.data[self.at] in _DIGITS:
                self.fail("invalid number", 1)
        else:
            self.digits()
        whole = True
        if self.data[self.at : self.at + 1] == b".":
            whole = False
            self.at += 1
            self.some_digits()
        if self.data[self.at : self.at + 1] in (b"e", b"E"):
            whole = False
            self.at += 1
            if self.data[self.at : self.at + 1] in (b"+", b"-"):
                self.at += 1
            self.some_digits(eaten=1)
        text = self.data[begin : self.at].decode()
        if whole and len(text) < 21:
            number = int(text)
            if -(1 << 63) <= number < 1 << 64 and text != "-0":
                return number
        return float(text)

    def digits(self) -> None:
        while self.at < len(self.data) and self.data[self.at] in _DIGITS:
            self.at += 1

    def some_digits(self, eaten: int = 0) -> None:
        if self.at >= len(self.data):
            self.fail("EOF while parsing a value")
        if self.data[self.at] not in _DIGITS:
            self.at += eaten
            self.fail("invalid number", 1 - eaten)
        self.digits()

    def string(self) -> str:
        begin, at, data = self.at, self.at + 1, self.data
        while at < len(data) and data[at] != ord('"'):
            if data[at] < 0x20:
                self.at = at + 1
                self.fail("control character (\\u0000-\\u001F) found while parsing a string")
            at += 1
            if data[at - 1] == ord("\\"):
                at = self.escape(at)
        self.at = min(at + 1, len(data))
        if at >= len(data):
            self.fail("EOF while parsing a string")
        return str(loads(data[begin : self.at]))

    def escape(self, at: int) -> int:
        """Check an escape sequence whose backslash is before `at`; return the position after it."""
        self.at = min(at + 1, len(self.data))
        if at >= len(self.data):
            self.fail("EOF while parsing a string")
        if self.data[at] not in _ESCAPES:
            self.fail("invalid escape")
        if self.data[at] != ord("u"):
            return at + 1
        first = self.hexadecimal(at + 1)
        if not 0xD800 <= first < 0xE000:
            return at + 5
        if first >= 0xDC00:
            self.fail("lone leading surrogate in hex escape")
        for letter in b"\\u":
            if self.at >= len(self.data):
                self.fail("EOF while parsing a string")
            self.at += 1
            if self.data[self.at - 1] != letter:
                self.fail("unexpected end of hex escape")
        if not 0xDC00 <= self.hexadecimal(self.at) < 0xE000:
            self.fail("lone leading surrogate in hex escape")
        return self.at

    def hexadecimal(self, at: int) -> int:
        """Read the four digits of an escape sequence `\\u`."""
        digits = self.data[at : at + 4]
        self.at = at + len(digits)
        if len(digits) < 4:
            self.fail("EOF while parsing a string")
        if not all(digit in b"0123456789abcdefABCDEF" for digit in digits):
            self.fail("invalid escape")
        return int(digits, 16)

    # -- lists and objects

    def enter(self) -> None:
        self.at += 1
        self.depth += 1
        if self.depth > _DEPTH:
            self.fail("recursion limit exceeded")

    def leave(self, close: int, what: str) -> None:
        """Read the end of a list or of an object."""
        self.depth -= 1
        found = self.peek()
        if found == close:
            self.at += 1
        elif found is None:
            self.fail(f"EOF while parsing {what}", 1)
        elif found == ord(","):
            self.at += 1
            self.fail("trailing comma" if self.peek() == close else "trailing characters", 1)
        else:
            self.fail("trailing characters", 1)

    def past(self, wrong: _Unplaced, close: int) -> NoReturn:
        """Raise the type error `wrong`, whose position is not known yet.

        If the object ends directly after the wrong value, serde_json reports the position after the object.
        """
        if self.peek() == close:
            self.at += 1
        raise wrong

    def another(self, close: int, first: bool) -> bool:
        """Return True if another element of the list, or member of the object, follows."""
        listed = close == ord("]")
        found = self.peek()
        if found is None:
            self.fail(f"EOF while parsing {'a list' if listed else 'an object'}", 1)
        if found == close:
            return False
        if not first:
            if found != ord(","):
                self.fail(f"expected `,` or `{chr(close)}`", 1)
            self.at += 1
            found = self.peek()
            if found is None:
                self.fail("EOF while parsing a value", 1)
            if found == close:
                self.fail("trailing comma", 1)
        if not listed and found != ord('"'):
            self.fail("key must be a string", 1)
        return True

    def list(self, form: str) -> list[Any]:
        self.enter()
        found: list[Any] = []
        while self.another(ord("]"), not found):
            found.append(self.value(form))
        self.leave(ord("]"), "a list")
        return found

    def colon(self) -> None:
        found = self.peek()
        if found is None:
            self.fail("EOF while parsing an object", 1)
        if found != ord(":"):
            self.fail("expected `:`", 1)
        self.at += 1

    def map(self) -> dict[str, Any]:
        self.enter()
        found: dict[str, Any] = {}
        first = True
        while self.another(ord("}"), first):
            first, key = False, self.string()
            self.colon()
            found[key] = self.value("*")
        self.leave(ord("}"), "an object")
        return found

    def struct(self, name: str) -> dict[str, Any]:
        struct = self.table["structs"][name]
        members, aliases = struct["members"], struct.get("aliases", {})
        self.enter()
        found: dict[str, Any] = {}
        first = True
        try:
            while self.another(ord("}"), first):
                first, given = False, self.string()
                key = aliases.get(given, given)
                if key in found:
                    raise _Unplaced(f"duplicate field `{key}`")
                if key not in members and struct.get("closed"):
                    raise _Unplaced(f"unknown field `{given}`, {_expected(members)}")
                self.colon()
                value = self.value(members.get(key, "*"))
                if key in members:
                    found[key] = value
            for key, form in members.items():
                if key not in found and form[-1] != "?":
                    raise _Unplaced(f"missing field `{key}`")
        except _Unplaced as wrong:
            self.past(wrong, ord("}"))
        self.leave(ord("}"), "an object")
        return found

    def elements(self, name: str) -> dict[str, Any]:
        """Read a struct that is written as a list of its members' values."""
        members, defaults = self.table["structs"][name]["members"], self.table["structs"][name].get("defaults", ())
        self.enter()
        found: dict[str, Any] = {}
        try:
            for key, form in members.items():
                if not self.another(ord("]"), not found):
                    if key in defaults:
                        found[key] = None
                        continue
                    size = f"{len(members)} element{'' if len(members) == 1 else 's'}"
                    raise _Unplaced(f"invalid length {len(found)}, expected struct {name} with {size}")
                found[key] = self.value(form)
        except _Unplaced as wrong:
            self.past(wrong, ord("]"))
        self.leave(ord("]"), "a list")
        return found

    def choice(self, name: str, start: int) -> str:
        """Read a word of an enum, written as a string or as the only key of an object."""
        if start != ord('"') and start != ord("{"):
            self.fail("expected value", 1)
        if start == ord("{"):
            self.at += 1
            if self.peek() != ord('"'):
                self.fail("expected value", 1)
        word = self.string()
        if word not in self.table["enums"][name]:
            raise _Unplaced(f"unknown variant `{word}`, {_expected(self.table['enums'][name])}")
        if start == ord("{"):
            self.colon()
            if (inner := self.peek()) != ord("n"):
                self.unlike(inner or 0, "unit")
            self.word(b"null")
            if self.peek() != ord("}"):
                self.fail("expected value", 1)
            self.at += 1
        return word


def _expected(names: Any) -> str:
    quoted = [f"`{name}`" for name in names]
    return f"expected {' or '.join(quoted)}" if len(quoted) < 3 else "expected one of " + ", ".join(quoted)


def _named(value: Any) -> str:
    """Return the name of a value in serde_json's error messages."""
    if type(value) in (dict, list):
        return "map" if type(value) is dict else "sequence"
    if value is None:
        return "null"
    text = float_text(value) if type(value) is float else dumps(value).decode()
    names = {bool: "boolean", int: "integer", float: "floating point"}
    return f"string {text}" if type(value) is str else f"{names[type(value)]} `{text}`"
