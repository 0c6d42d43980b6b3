"""Find secrets that the text around them reveals: the rows of `forms.py`, JSON web keys, XML elements, default values for missing
variables, and data sources of Go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial

from codex_replay.core.redact.forms import FORMS, PARTS
from codex_replay.core.redact.named import secret_parts
from codex_replay.core.redact.placeholders import is_placeholder
from codex_replay.core.redact.rules import is_stand_in, kind_of_name, looks_random
from codex_replay.core.redact.text import Finder, Span, late

_PART = late(r"\{([A-Za-z_]+)\}")
#: Ports and their pairs (`docker run --name mysql -p3306:3306`).
_PORTS = late(rb"(?:[0-9.]{7,15}:)?[0-9]{1,6}(?::[0-9]{1,6})?\]{0,4}")


def _is_harmless(value: bytes) -> bool:
    return is_stand_in(value) or _PORTS.fullmatch(value) is not None


@cache
def pattern(form: str) -> re.Pattern[bytes]:
    """Return the regular expression of a form of secret (see `forms`), with the parts of the form filled in.

    The regular expression is compiled at its first use, because most forms are never needed.
    """
    while found := _PART.search(form):
        form = form.replace(found[0], PARTS[found[1]])
    return re.compile(form.encode("latin-1"))


def find_form(trigger: bytes, form: str, kind: str, data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the span of the `secret` group at each place where the trigger of the form occurs."""
    at = low.find(trigger)
    while at >= 0:
        found = pattern(form).match(data, at + len(trigger))
        if found is not None:
            start, end = found.span("secret")
            secret = data[start:end]
            if not is_placeholder(secret) and not _is_harmless(secret):
                yield Span(start, end, kind)
        at = low.find(trigger, at + 1)


#: The private members of a JSON web key, at any depth of nesting.
_JWK_PART = late(rb"\\{0,63}\"(?:d|k|p|q|dp|dq|qi)\\{0,63}\"\s{0,8}:\s{0,8}\\{0,63}\"([A-Za-z0-9_-]{16,}+)")


def find_jwks(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the values of the private members of JSON web keys (objects that have a `kty`)."""
    at = low.find(b"kty")
    while at >= 0:
        start, end = data.rfind(b"{", max(0, at - 8192), at), data.find(b"}", at, at + 8192)
        if start >= 0 and end >= 0:
            for found in _JWK_PART.finditer(data, start, end):
                if not is_placeholder(found[1]):
                    yield Span(*found.span(1), "private-key")
        at = low.find(b"kty", max(at + 3, end))  # an object is looked through once


_COOKIE_VALUE = late(rb"\\{0,63}\"value\\{0,63}\"\s{0,8}:\s{0,8}\\{0,63}\"([^\s\"\\]{16,})")


def find_cookie_objects(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the value of each cookie that is a JSON object (with `httpOnly`), as browsers and HAR files store it."""
    at = low.find(b"httponly")
    while at >= 0:
        start, end = data.rfind(b"{", max(0, at - 4096), at), data.find(b"}", at, at + 4096)
        found = _COOKIE_VALUE.search(data, start, end) if start >= 0 and end >= 0 else None
        if found is not None and not is_placeholder(found[1]):
            yield Span(*found.span(1), "cookie")
        at = low.find(b"httponly", at + 8)


_QUOTE = rb"\\{0,63}[\"']"
_ENTRY_VALUE = late(
    rb"(?i)value(?:"
    + _QUOTE
    + rb")?\s{0,4}[:=]\s{0,4}"
    + _QUOTE
    + rb"(?P<secret>(?:[a-z]{3,12} )?(?P<word>[^\s\"'\\<>{}|;,]{8,512}+))"
)
_ENTRY_NAME = late(
    rb"(?i)(?<![a-z])[a-z]{0,12}(?:name|key)(?:"
    + _QUOTE
    + rb")?\s{0,4}[:=]\s{0,4}"
    + _QUOTE
    + rb"(?:[\w.-]{0,64}[/:]){0,8}(?P<last>[\w.-]{2,64})"
    + _QUOTE
)
_NEAR = 512


def find_entries(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the value of each entry whose name marks a secret: X in `{"value": "X", "name": "API_KEY"}`."""
    for found in _ENTRY_VALUE.finditer(data):
        if not looks_random(found["word"]):
            continue
        start = max(data.rfind(sign, max(0, found.start() - _NEAR), found.start()) for sign in (b"{", b"<"))
        ends = [end for end in (data.find(sign, found.end(), found.end() + _NEAR) for sign in (b"}", b">")) if end >= 0]
        for name in _ENTRY_NAME.finditer(data, start, min(ends)) if start >= 0 and ends else ():
            kind = kind_of_name(name["last"].decode())
            if kind is not None:
                yield from secret_parts(data, kind, *found.span("secret"))
                break


_BLANK = rb"(?:\s|\\{1,64}[nrt]){0,32}+"
_SECRET_ELEMENT = rb"(?:(?:client|app|access|refresh|auth|api|shared)[_-]?)?(?:token|secret|api_?key)"
_ELEMENT = late(
    rb"(?i)<(?:[\w-]{1,32}:)?(?:(?:password|passwd|passphrase)(?: [^<>]{0,128})?>|"
    + _SECRET_ELEMENT
    + rb"(?: [^<>]{0,128})?>(?=[^\s<>]{0,256}[0-9])"
    + rb"|pass(?: encoding=[^<>]{1,32}>|>(?=[^\s<>]{6})(?=[^\s<>]{0,256}[0-9])(?=[^\s<>]{0,256}[A-Za-z])))"
    + _BLANK
    + rb"(?![-$<{(])([^\s\"'\\<>]{1,256}+)"
    + _BLANK
    + rb"</"
)


def find_elements(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the content of each XML element whose name marks a password."""
    for found in _ELEMENT.finditer(data):
        if not is_placeholder(found[1]) and not _is_harmless(found[1]):
            yield Span(*found.span(1), "password")


_SIGNATURE = late(rb"(?i)<(?:[\w-]{1,32}:)?(?:signature|cipher)value>((?:[a-z0-9+/=\s]|\\{1,64}[nrt]){64,}+)</")


def find_assertions(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the signature of a SAML assertion, without which nobody accepts it, or the content of an encrypted assertion."""
    if b"assertion" in low:
        for found in _SIGNATURE.finditer(data):
            yield Span(*found.span(1), "token")


_TELLING_BEFORE = r"(?i)(?:password|passwd|passphrase|secret|token|api_?key)(?:{quote})?\]?\)?[ ]?\Z"


def find_fallbacks(sign: bytes, data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the default value that code uses if a variable is missing: X in `process.env.API_KEY || 'X'`."""
    at = data.find(sign)
    while at >= 0:
        found = pattern("[ ]?{string}").match(data, at + len(sign))
        secret = found["secret"] if found is not None and pattern(_TELLING_BEFORE).search(data[max(0, at - 80) : at]) else b""
        if found is not None and secret and not is_placeholder(secret) and not _is_harmless(secret):
            yield Span(*found.span("secret"), "secret")
        at = data.find(sign, at + 1)


_DSN = late(rb"(?<![\w.:/-])[\w.-]{1,64}:([^\s\"'\\:/]{1,128})\Z")


def find_dsns(sign: bytes, data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the password in the name of a Go data source: X in `ann:X@tcp(db:3306)/shop`."""
    at = low.find(sign)
    while at >= 0:
        found = _DSN.search(data, max(0, at - 200), at)
        if found is not None and not is_placeholder(found[1]):
            yield Span(*found.span(1), "password")
        at = low.find(sign, at + 1)


COMMANDS: tuple[Finder, ...] = (
    *(
        Finder(trigger, partial(find_form, trigger.encode(), form, kind))
        for kind, triggers, form in FORMS
        for trigger in triggers.split("|")
    ),
    Finder("</", find_elements),
    Finder("signaturevalue>", find_assertions),
    Finder("ciphervalue>", find_assertions),
    Finder("value", find_entries),
    Finder("kty", find_jwks),
    Finder("httponly", find_cookie_objects),
    *(Finder(sign, partial(find_fallbacks, sign.encode())) for sign in ("||", "??")),
    *(Finder(sign, partial(find_dsns, sign.encode())) for sign in ("@tcp(", "@unix(")),
)
