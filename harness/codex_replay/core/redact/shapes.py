"""Find secrets by their shape: keys, JWTs, bearer tokens, e-mail addresses, PEM keys, home directories.

Each finder gets a text and a lower-case copy of the text, and yields the places (spans) of secrets. All patterns are
bounded or possessive, so that the time of a search grows linearly with the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from codex_replay.core.redact.commands import COMMANDS
from codex_replay.core.redact.named import find_flags, find_named
from codex_replay.core.redact.placeholders import is_home_placeholder, is_placeholder, is_redacted_jwt
from codex_replay.core.redact.rules import JWT, NAME_WORDS, is_sk_key, is_stand_in
from codex_replay.core.redact.services import SERVICES
from codex_replay.core.redact.text import WORD, Finder, Span, late, word_start

_SK_RUN = late(rb"sk-[A-Za-z0-9_-]*+")
_MIXED = late(rb"(?=.*[0-9])(?=.*[a-z]).*[A-Z]")
_SK_IN_WORD = late(
    rb"sk-(?:(?:proj|svcacct|admin|ant|or|live|test|None)-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}"
    rb"|(?=[a-zA-Z]*[0-9])(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])[A-Za-z0-9]{20,})"
)


def _is_key_in_word(before: bytes, run: bytes) -> bool:
    """Return True if a match directly after other letters is a key, and False if it is a part of a long encoded text."""
    encoded = before.startswith(b"gAAAA") or (len(before) > 40 and _MIXED.match(before) is not None)
    return not encoded and _SK_IN_WORD.match(run) is not None


def find_sk_keys(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield keys of the form `sk-...`.

    If letters stand directly before `sk-` (`task-...`), the rest must not look like a normal word.
    """
    at = data.find(b"sk-")
    while at >= 0:
        run = _SK_RUN.match(data, at)
        before = data[word_start(data, at + 3) : at]
        if run is not None and (_is_key_in_word(before, run[0]) if before else is_sk_key(run[0])):
            if not is_placeholder(run[0]):
                yield Span(*run.span(), "api-key")
            at = run.end() - 3
        at = data.find(b"sk-", at + 3)


def find_jwts(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield JWTs, signed (three parts), encrypted (five) or cut off after the payload."""
    at = 0
    while True:
        found = JWT.search(data, at)
        if found is None:
            return
        parts = found[2].split(b".")[1:]
        if len(found[1]) < 12 or not parts or (len(parts) < 2 and not parts[0].startswith(b"eyJ")):
            at = found.end(1)
            continue
        # A dot after the signature may end a sentence; only an encrypted token has five parts.
        end = found.end() if len(parts) == 4 and all(parts[1:]) else found.end(1) + sum(len(part) + 1 for part in parts[:2])
        at = end
        if not is_redacted_jwt(data[found.start() : end]):
            yield Span(found.start(), end, "jwt")


_BEARER = late(rb"bearer(?:[ \t+]|%20){1,4}+(?!realm=|error=|scope=)([a-z0-9._~+/=-]++)")
_PLAIN_WORD = late(rb"[A-Za-z]?[a-z]*[.]?")


def find_bearers(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the token after the word `Bearer` anywhere in a text. An ordinary word after `Bearer` is not a token."""
    for found in _BEARER.finditer(low):
        start, end = found.span(1)
        end = start + len(data[start:end].rstrip(b"."))
        token = data[start:end]
        word = _PLAIN_WORD.fullmatch(token) is not None
        if (len(token) >= 16 if word else len(token) >= 6) and not is_placeholder(token) and not is_stand_in(token):
            yield Span(start, end, "bearer")


_PEM = late(
    rb"-----?[ ]?BEGIN (?:[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)[ ]?-----?"
    rb"(?:(?:\s|\\+[nr]){1,4}Comment: \\*\"[^\"\r\n]{0,120}\")?"  # SSH2
    rb"((?:[A-Za-z0-9+/=\s:,.()@<>#;_|]|-(?!-)|\\+[nrt/]?)*+)"
)
_PEM_END = late(rb"-----?[ ]?END [A-Z0-9 ]{0,40}PRIVATE KEY")
_PEM_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n\\"
_PEM_LINES = late(rb"(?:\s|\\+[nr])*+(?P<lines>.*?)(?:\s|\\+[nr])*\Z", re.DOTALL)
_LONG_LINE = late(rb"[A-Za-z0-9+/=]{32}")
_PEM_MOST = 8192  # bytes
_KEY_LINE = late(rb"[A-Za-z0-9+/=]{12}")
#: A line of a key that code or JSON has as a string of its own.
_STRING_LINE = late(
    rb"(?:[\s\"',+.;|#>*]|\\+(?:[nrt\"']|\Z)){2,80}+(?:redacted-private-key-[0-9]+|([A-Za-z0-9+/=]{32,}+"
    rb"|[A-Za-z0-9+/=]{4,31}+(?=[^A-Za-z0-9]{1,40}(?:n[^A-Za-z0-9]{1,40})?-----END)))"
)


def find_private_keys(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the span between the markers of each PEM private key, and the lines before an end whose beginning was cut off."""
    for end in _PEM_END.finditer(data):
        before = data[max(0, end.start() - _PEM_MOST) : end.start()]
        first = end.start() - len(before) + len(before.rstrip(_PEM_LETTERS))
        lines = _PEM_LINES.match(data, first, end.start())
        if lines is not None and _LONG_LINE.search(lines["lines"]):
            yield Span(*lines.span("lines"), "private-key")
    for found in _PEM.finditer(data):
        # A backslash before a closing quote is the quote's, not the key's.
        body = found[1].rstrip(b"\\")
        redacted = data.startswith(b"redacted-", found.start(1)) or is_placeholder(body)
        if _KEY_LINE.search(body):
            if not redacted:
                yield Span(found.start(1), found.start(1) + len(body), "private-key")
            continue
        line = _STRING_LINE.match(data, found.end(1))
        while line is not None:
            if line[1]:
                yield Span(*line.span(1), "private-key")
            line = _STRING_LINE.match(data, line.end())


_LOCAL = WORD + b".+" + bytes(range(0x80, 0xC0)) + b"\xc3\xc4\xc5"  # of e-mail addresses, accented letters included
_CONTINUATION = bytes(range(0x80, 0xC0))
_LETTER_OF_DOMAIN = rb"(?:[A-Za-z0-9-]|[\xc3-\xc5][\x80-\xbf])"
_AT_DOMAIN = {at: late(at.encode() + rb"((?:" + _LETTER_OF_DOMAIN + rb"{1,63}\.){1,8}[A-Za-z]{2,24})") for at in ("@", "%40")}
_UNITS = (b"service", b"socket", b"timer", b"target", b"mount", b"slice", b"scope", b"device")  # systemd: user@1000.service


#: Versions of packages (`foo@1.2.3.tgz`) and sizes of pictures (`icon@2x.png`).
_NO_DOMAIN = late(
    rb"^(?:v?[0-9]+\.[0-9]|[0-9](?:\.[0-9])?x\.)|\.(?:tgz|tar|gz|zip|png|jpe?g|gif|svg|webp|js|mjs|ts|css|md|json|whl"
    rb"|conf|cfg|ini|txt|log|ya?ml|toml|lock|html?|xml|exe|dll|jar|dylib|csv|sql|tsx|jsx)$"
)


def find_emails(pattern: re.Pattern[bytes], data: bytes, low: bytes) -> Iterator[Span]:
    """Yield e-mail addresses.

    Two kinds of addresses are not yielded: `git@host` names no person, and another finder handles the user part of a URL.
    """
    for found in pattern.finditer(data):
        start = word_start(data, found.start(), _LOCAL)
        while data[start : start + 1] and data[start : start + 1] in _CONTINUATION:
            start += 1
        local = data[start : found.start()]
        domain = found[1].lower()
        if not local or local == b"git" or _NO_DOMAIN.search(domain) or domain == b"redacted.example" or domain.endswith(_UNITS):
            continue
        if data[start - 1 : start] == b":" and _URL_USER.search(data[max(0, start - 80) : start]):
            continue
        yield Span(start, found.end(), "email")


_URL_USER = late(rb"://[^\s/\"'@:\\]{0,64}:\Z")
_URL_PASSWORD = late(rb":/{1,2}[^\s/\"'@:\\]{0,64}+:([^\s/\"'@\\]{1,256}+)@")


def find_url_passwords(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the password in `scheme://user:password@host`.

    One slash is accepted, too, because some programs shorten `//` to `/`.
    """
    for found in _URL_PASSWORD.finditer(data):
        if found[1] == b"x-oauth-basic":  # GitHub: the token is the user
            start = data.rfind(b"/", 0, found.start(1)) + 1
            if not is_placeholder(data[start : found.start(1) - 1]):
                yield Span(start, found.start(1) - 1, "token")
        elif not is_placeholder(found[1]) and not is_stand_in(found[1]):
            yield Span(*found.span(1), "url-password")


# --- home directories -----------------------------------------------------------------------------------------------------------

_NAME = rb"(?P<name>(?:[a-z0-9._@+~$-]|[\x80-\xff]|\\+u(?!00[01])[0-9a-f]{4})++)"
_HOMES = {word: late(word.encode() + rb"(?:/|(?P<slashes>\\{1,64}+)|%2f|%5c)" + _NAME) for word in ("home", "users")}
_LETTER_ESCAPE = late(rb"u(?!00[01])[0-9a-fA-F]{4}")
_MORE_NAME = late(rb"(?:[ ][A-Z][\w.-]*+){1,2}(?=\\\\|\\(?![nrt\"])|\")")  # C:\Users\Ann Lee\
_ROOT = late(rb"(?:/|%2[Ff])root(?![A-Za-z0-9_~-]|\.[A-Za-z0-9_])")
# What may be before an absolute path: nothing, no letter of a path, the end of an escape, a compiler's flag, a known mount,
# the sides of a diff (a//tmp/x b//tmp/x), a key of Codex's configuration (projects./tmp/x.trust_level).
PATH_BEFORE = (
    rb"(?:^|[^\w.~#%/<-]|(?<![\w.~#%/-])[ab]/|(?<![\w.])projects\.|[:=]/{2,3}(?:localhost|file)?|\\[nrtbf]|(?<![\w-])-[A-Z]|%3[ADad]|%2[02]"
    rb"|\x1b\[[0-9;]*m|\\u001[bB]\[[0-9;]*m)"
)
_SEP = rb"(?:/|%2[Ff])"
_POSIX_BEFORE = late(
    PATH_BEFORE
    + rb"(?:/(?:mnt|cygdrive)/[a-z]|/[a-z]|/(?:var|private|export|usr|data|host_mnt)|/System/Volumes/Data|/Volumes/[\w -]{1,32})?"
    + _SEP
    + rb"\Z"
)
_WINDOWS_BEFORE = late(rb"(?:[A-Za-z](?::|%3[Aa])(?:/|\\+|%5[Cc]|%2[Ff])|(?i:wsl[$.\w]*)\\+[\w.-]+\\+)\Z")
_PLAIN_BEFORE = frozenset(bytes([byte]) for byte in b" \t\r\n\"'=:,;(){}[]`|>")  # the common case of the above, spared a regex
_ROOT_BEFORE = late(PATH_BEFORE + rb"\Z")
_NOT_PERSONAL = (b"shared", b"public", b"default", b"linuxbrew")


def _is_escape(data: bytes, found: re.Match[bytes]) -> bool:
    """Return True if the backslashes after `home` begin an escape, such as `/home\\n`, and are not path separators."""
    before = data[max(0, found.start() - 64) : found.start()]
    slashes = len(before) - len(before.rstrip(b"\\"))
    if slashes:
        return len(found["slashes"]) < slashes
    return before[-1:] not in b"/\\" or data[found.start("name")] in b"nrtbfu" or before[-2:-1] != b":"


def find_homes(pattern: re.Pattern[bytes], data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the user's name in /home/NAME, /Users/NAME and C:\\Users\\NAME, even if the backslashes are escaped."""
    for found in pattern.finditer(low):
        start, end = found.span("name")
        end -= len(found["name"]) - len(found["name"].rstrip(b".-~@+"))
        if found["slashes"]:
            if _is_escape(data, found):
                continue
            # A separator has 1, 2, 4, ... backslashes; what is left over begins an escape: a letter of the name, or a control.
            escape = len(found["slashes"]) - (1 << len(found["slashes"]).bit_length() - 1)
            if escape and not _LETTER_ESCAPE.match(data, start):
                continue
            start -= escape
            more = _MORE_NAME.match(data, end)
            end = more.end() if more else end
        name = data[start:end]
        if not name or name[:1] in (b".", b"$") or is_home_placeholder(name) or name.lower() in _NOT_PERSONAL:
            continue
        before = data[max(0, found.start() - 64) : found.start()]
        plain = before[-1:] == b"/" and before[-2:-1] in _PLAIN_BEFORE
        if plain or _POSIX_BEFORE.search(before) or _WINDOWS_BEFORE.search(data[max(0, found.start() - 136) : found.start()]):
            yield Span(start, end, "home")


def find_roots(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield `/root`, the home folder of the user root."""
    for found in _ROOT.finditer(data):
        if _ROOT_BEFORE.search(data[max(0, found.start() - 64) : found.start()]):
            yield Span(*found.span(), "home")


FINDERS: tuple[Finder, ...] = (
    *(Finder(word, partial(find_named, word)) for word in NAME_WORDS),
    Finder("--", find_flags),
    Finder("sk-", find_sk_keys),
    *SERVICES,
    *COMMANDS,
    Finder("eyj", find_jwts),
    Finder("bearer", find_bearers),
    *(Finder(word, find_private_keys) for word in ("private key", "static key")),
    *(Finder(at, partial(find_emails, pattern)) for at, pattern in _AT_DOMAIN.items()),
    Finder(":/", find_url_passwords),
    *(Finder(word, partial(find_homes, pattern)) for word, pattern in _HOMES.items()),
    Finder("/root", find_roots),
    Finder("%2froot", find_roots),
)
