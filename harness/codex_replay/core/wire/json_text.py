"""Read JSON text strictly, and write JSON in the same form as serde_json, the JSON library of Codex.

Python's `json` package imports `re`, which takes longer than the whole start-up of fake-codex is allowed to take. To avoid
the import of `re`, this module uses only the part of `json` that is written in C. If the Python interpreter lacks the C
part of `json`, the whole package is used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Scan = Callable[[str, int], tuple[Any, int]]


class NotJson(ValueError):
    """The bytes are not exactly one JSON text in UTF-8; the message gives the reason."""


class OutOfBounds(NotJson):
    """The JSON text is nested too deeply, or is too large, to be read.

    This error does not mean that the text is invalid JSON.
    """


class OutOfRange(OutOfBounds):
    """The JSON text has a number that is infinite as a float, and that therefore cannot be written as JSON again."""


def finite(text: str) -> float:
    """Read a number as a float. Raises `OutOfRange` if the float is infinite."""
    value = float(text)
    if value - value:  # infinity minus itself is no number, and true
        raise OutOfRange("a number out of range")
    return value


def _refuse_constant(name: str) -> None:
    raise NotJson(f"{name} is not JSON")


class _Settings:
    """The options of the C scanner (the attributes of json.JSONDecoder that it reads)."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_constant = staticmethod(_refuse_constant)
    memo: dict[str, str] = {}  # noqa: RUF012 - the C scanner wants an attribute, not an instance


try:
    import _json

    def scanner(parse_float: Callable[[str], Any] = float, parse_int: Callable[[str], Any] = int) -> Scan:
        """Return a scanner for `loads` that converts the texts of numbers with the functions `parse_float` and `parse_int`."""
        # Both are CPython's own, used as json.decoder and json.encoder use them; the stubs describe their Python look-alikes.
        numbers = {"parse_float": staticmethod(parse_float), "parse_int": staticmethod(parse_int)}
        return _json.make_scanner(type("_Numbers", (_Settings,), numbers))  # type: ignore[arg-type]

    def _encoder(escape: Callable[[str], str], nan: bool = False) -> Callable[[Any, int], tuple[str, ...]]:
        return _json.make_encoder(None, None, escape, None, ":", ",", False, False, nan)  # type: ignore[arg-type]

    _encode = _encoder(_json.encode_basestring)
    _encode_ascii = _encoder(_json.encode_basestring_ascii)
    _encode_any = _encoder(_json.encode_basestring, nan=True)
except (ImportError, AttributeError, TypeError):  # pragma: no cover - not CPython
    import json

    def scanner(parse_float: Callable[[str], Any] = float, parse_int: Callable[[str], Any] = int) -> Scan:
        """Return a scanner for `loads` that converts the texts of numbers with the functions `parse_float` and `parse_int`."""
        decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=parse_float, parse_int=parse_int)
        return decoder.scan_once  # type: ignore[attr-defined,no-any-return]

    def _encode(value: Any, _level: int) -> tuple[str, ...]:
        return (json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False),)

    def _encode_ascii(value: Any, _level: int) -> tuple[str, ...]:
        return (json.dumps(value, separators=(",", ":"), allow_nan=False),)

    def _encode_any(value: Any, _level: int) -> tuple[str, ...]:
        return (json.dumps(value, ensure_ascii=False, separators=(",", ":")),)


_scan = scanner()
#: A scanner for `loads`: a number out of range is `OutOfRange`.
scan_finite = scanner(finite)
_SPACE = " \t\n\r"


def loads(data: bytes, scan: Scan = _scan) -> Any:
    """Return the value of one JSON text.

    Only white space is allowed around the text. `loads` is stricter than `json.loads`: it refuses NaN, Infinity, a
    byte-order mark, and any encoding other than UTF-8. Raises `NotJson` for a text that is refused. A caller with stricter rules
    for numbers passes its own scanner as `scan`.
    """
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise NotJson(f"not UTF-8 at byte {error.start}") from None
    start = len(text) - len(text.lstrip(_SPACE))
    try:
        try:
            value, end = scan(text, start)
        except SystemError:  # the C scanner needs json.decoder loaded before it can raise an error
            import json.decoder  # noqa: F401

            value, end = scan(text, start)
    except StopIteration as stop:
        bom = text.startswith("\ufeff")
        raise NotJson("it begins with a byte-order mark" if bom else f"no JSON value at character {stop.value}") from None
    except RecursionError:
        raise OutOfBounds("nested too deeply") from None
    except NotJson:
        raise
    except ValueError as error:
        raise NotJson(_why(error)) from None
    if text[end:].strip(_SPACE):
        raise NotJson(f"extra text at character {end}")
    return value


def value_or_none(data: bytes | None) -> Any:
    """Return the value of a JSON text; None if `data` is None or not JSON."""
    try:
        return None if data is None else loads(data)
    except NotJson:
        return None


def _why(error: ValueError) -> str:
    """Return the error message of Python's json package about a text, as part of a sentence."""
    message: str | None = getattr(error, "msg", None)
    if message is None:  # it is int's: the text is JSON, and Python guards itself against what such a number costs
        import sys

        return f"a number has more digits than Python reads ({sys.get_int_max_str_digits()})"
    # Some of its texts already end in "at"; the line and column that follow are useless for one line of a file.
    return f"{message[:1].lower()}{message[1:].removesuffix(' at')} at character {getattr(error, 'pos', 0)}"


def dumps(value: Any) -> bytes:
    """Return `value` as compact JSON in UTF-8: no spaces, keys in their order, non-ASCII characters unescaped.

    Raises `ValueError` for a value that has no JSON form in UTF-8 (NaN, a lone surrogate, an object of another type).
    """
    try:
        return "".join(_encode(value, 0)).encode()
    except (TypeError, RecursionError) as error:
        raise ValueError(f"it cannot be written as JSON: {error}") from None


def ascii_dumps(value: Any) -> bytes:
    """Return `value` as compact JSON in ASCII: like `dumps`, but every other character is escaped, including lone surrogates.

    Raises `ValueError` for a value that has no JSON form (NaN, an object of another type).
    """
    try:
        return "".join(_encode_ascii(value, 0)).encode()
    except (TypeError, RecursionError) as error:
        raise ValueError(f"it cannot be written as JSON: {error}") from None


def compact(value: Any) -> str:
    """Return `value` as JSON text, like `dumps`, but keep lone surrogates, and write NaN as `NaN`.

    Raises `TypeError` for an object that JSON cannot represent.
    """
    return "".join(_encode_any(value, 0))


def member_span(data: bytes, key: str) -> tuple[int, int] | None:
    """Return the position of the value of a top-level member of one JSON object, in bytes (start, end), or None.

    `data` may have white space and a line end around the object. If several members have the same name, the last one
    counts, as in every JSON reader.
    """
    text = str(data, "utf-8")
    found = None
    for name, start, end in members(text):
        if name == key:
            found = (len(text[:start].encode()), len(text[:end].encode()))
    return found


def members(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the top-level members of one JSON object: the name, and the start and end of its value, in characters.

    If a name occurs twice, both members are yielded. If the text is not one JSON object, yield nothing.
    """
    at = skip(text, 0)
    if text[at : at + 1] != "{":
        return
    at = skip(text, at + 1)
    while text[at : at + 1] == '"':
        name, at = _scan(text, at)
        start = skip(text, skip(text, at) + 1)
        _, at = _scan(text, start)
        yield name, start, at
        at = skip(text, at)
        if text[at : at + 1] != ",":
            break
        at = skip(text, at + 1)


def skip(text: str, at: int) -> int:
    """Return the position of the next character that is not white space, from `at` on."""
    while text[at : at + 1] in _SPACE and at < len(text):
        at += 1
    return at
