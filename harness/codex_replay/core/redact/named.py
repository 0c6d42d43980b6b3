"""Find secrets by the name that is next to them: JSON keys, form and query fields, NAME=value, header lines and pairs, flags in
an argv.

To work in JSON that is nested in strings, this module counts the backslashes before the quotes, and decodes nothing. If a
text may be prose or code (`password: string`), only a value that looks like a secret is redacted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from codex_replay.core.redact.forms import PARTS
from codex_replay.core.redact.placeholders import is_placeholder
from codex_replay.core.redact.rules import (
    is_description,
    is_like_password,
    is_same_name,
    is_short_name,
    is_stand_in,
    kind_of_name,
    looks_random,
    weak_kind_of_name,
)
from codex_replay.core.redact.text import Span, late, string_end, word_start

#: Blanks, no-break and zero-width ones and the colours of a terminal included.
_SPACE = r"(?:[ \t\r\n]|\\{1,64}(?:[nrt]|u00a0|u200b)|\xc2\xa0|\xe2\x80\x8b|(?:\x1b|\\{1,64}u001b)\[[0-9;]{0,12}m){0,16}+"
_QUOTE = r"\\{0,63}[\"']"
#: The type of a variable: `password: str = "X"`, `var password string = "X"`.
_TYPE = rf"(?:(?::[ ]?[a-z&*?(][\w.:&*<>\[\]?'\\| ]{{0,40}}?|\*?string|\[\]byte)[ ](?==[ ]?[^=\s]{{0,40}}{_QUOTE}))?"
_ARROW = r"(?P<arrow>(?:-{1,2}>|\xe2\x86\x92|\\{1,64}u2192)(?=[ ]))"
_WIDE_COLON = r"\xef\xbc\x9a|\\{1,64}uff1a"
#: The end of a name in bold or in backticks, before or after the separator: `**Password:** X`.
_MARK = r"(?:[*_]{2}|`)?"
#: The first line of a block of YAML, such as `password: >-`, or of a here-document (`<<EOT`), up to the block's text.
_LINE = PARTS["line"].replace("{eol}", PARTS["eol"]).replace("{number}", PARTS["number"])
_HERE = rf"<<[~-]?(?:{_QUOTE})?[a-z_]{{2,16}}(?:{_QUOTE})?"
_BLOCK = rf"(?:(?P<block>[|>][0-9+-]{{0,2}}|{_HERE})(?:[ ]{{1,8}}#[^\r\n\"\\]{{0,80}})?(?:{_LINE}){{1,3}})?"
#: Three quotes of a string, of which the last begins the value.
_TRIPLE = rf"(?:(?P<triple>{_QUOTE})(?P=triple)(?=(?P=triple)))?"
#: The value of a parameter of Azure: `{"adminPassword": {"value": "X"}}`.
_IN_OBJECT = rf"\{{{_SPACE}{_QUOTE}value{_QUOTE}{_SPACE}:{_SPACE}"
#: A string's prefix in code, or the calls that make a value of a string: `Some(String::from("X"))`, `SecretStr("X")`.
_BEFORE_VALUE = (
    rf"(?:[bfru@]{{1,2}}(?={_QUOTE})|!(?:![a-z]{{1,16}}|unsafe)[ ]|&[\w-]{{1,64}}[ ]|<code>|(?:some\(|string::from\(){{1,2}}"
    r"|(?P<call>(?:new )?[a-z_]{0,24}(?:secret|credential|password|key)[a-z]{0,16}(?:::(?:new|from))?\())?"
)
_AFTER_WORD = (
    r"[a-z0-9_-]{0,48}+(?:"
    # a name in quotes: only a string or a list of strings under it can be secret, counts of tokens are not
    + rf"(?P<quote>{_QUOTE})(?:\](?=[ ]?=[^=]))?{_SPACE}(?P<sep>=>|[:=,]){_SPACE}"
    + rf"(?:@|b(?=')|default=|{_IN_OBJECT})?(?:(?P<open>{_QUOTE})|(?=\[))"
    + rf"|(?:\[\])?{_MARK}{_SPACE}{_TYPE}"
    + rf"(?P<bare_sep>=>|{_ARROW}|===?(?={_SPACE}{_QUOTE})|[:?]=|[:=]|{_WIDE_COLON}|%3d|(?<=[ ])(?:\|[ ]|(?={_QUOTE})))"
    + rf"{_MARK}{_SPACE}{_BLOCK}{_BEFORE_VALUE}{_TRIPLE}(?P<bare_open>{_QUOTE})?)"
)
_BARE = late(rb"(?:(?!%26)[^\x00-\x20\"'&\\;|<>(){}\[\]`])++")
# A closed single-quoted string may contain escaped double quotes; an unclosed one must not run past the string around it.
_SINGLE = late(rb"(?:[^'\"\\\r\n]|\\++[^\r\n])*+(?=')|(?:[^'\"\\\r\n]|\\++[^\"'\\\r\n])*+")
# What is around a string in JSON at any depth.
_AFTER_STRING = late(rb"(?:\s|\\{1,64}[nrt]){0,64}+(?:[,:}\])]|\Z)")
_BEFORE_STRING = late(rb"(?:[:,\[{(]|\A)(?:\s|\\{1,64}[nrt]){0,32}\Z")
_LINE_END = late(rb"[ \t]{0,8}(?:[\r\n]|\\{1,64}[nr])")
_PROMPT = late(rb"\([ ]?[fFrRbBuU]?'[^'\r\n]{0,200}\Z")  # input('Password: ')
_HEADER_LINE = late(rb"[^\r\n\"'\\]++")
_COOKIE_LINE = late(rb"[ ]*[^\s=;,\[({]++=[^\s=]")
_CALL = late(rb"[A-Za-z_]\w*+(?:(?:\.|::)[A-Za-z_]\w*+)*+")
#: A value in a cell of a table, or in backticks: a digit and letters of both cases (or signs).
_MIXED = rb"(?=[^\s|`]*[0-9])(?=[^\s|`]*[a-z])(?=[^\s|`]*[A-Z!#@^*+?])(?P<value>[^\x00-\x20|`\"'\\<>${}]{8,256}+)"
_CELL = late(_MIXED + rb"`?[ ]*\|")
_TICKED = late(b"`" + _MIXED + b"`")
#: A value after an arrow: no call, no path, and no name of a type such as `TokenKind2`.
_POINTED = late(
    rb"(?![^\x00-\x20\"']*[(\[/])(?!(?i:argon|pbkdf|base|sha)-?[0-9])"
    + PARTS["no_type"].encode()
    + rb"(?:(?=[A-Za-z]{0,64}[0-9])(?P<key>[A-Za-z0-9]{20,256}+)|"
    + _MIXED
    + rb")(?=[\x00-\x20\"'\\,;\])]|\Z)"
)
_SCHEME = late(
    rb"(?i)[ ]*(?:bearer|basic|token|digest|negotiate|api-?key|key|bot|oauth|dpop|ssws|geniekey|splunk)(?:[ \t+]|%20)++"
)
_NEXT_VALUE = late(rb"(?i)\\{0,63}[\"']value\\{0,63}[\"']\s{0,8}:\s{0,8}(?P<open>\\{0,63}[\"'])")
_NEXT_ITEM = late(rb"[ \t\r\n]{0,16}+,?[ \t\r\n]{0,16}+(?P<open>\\{0,63}[\"'])")
_PAIR_BEFORE = late(rb"(?:[\[,(]\s{0,8}[\[(])\s{0,8}\\{0,63}[\"']\Z")
_CALL_BEFORE = late(rb"\w\(\s{0,8}\\{0,63}[\"'][\w.]{0,48}\Z")
_WORD_LIKE = late(rb"[^\s|;\\]{4,256}")
_HEADER_NAME = late(r"(?i)(?:proxy-)?authorization|(?:set-)?cookie|[a-z]+-[a-z-]+")


@cache
def _pattern(word: str) -> re.Pattern[bytes]:
    """Return the regular expression for the names that contain a word such as "password".

    Each word has its own expression, because an expression that begins with plain text is fast.

    The expressions are compiled at their first use, because compiling all of them takes longer than the rest of the
    redactor's import.
    """
    return re.compile((re.escape(word) + _AFTER_WORD).encode())


def find_named(word: str, data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the values of all names that contain `word` and mark a secret; `word` is one of `NAME_WORDS`."""
    pattern = _pattern(word)
    at = 0
    while True:
        found = pattern.search(low, at)
        if found is None:
            return
        at = found.end()
        # The name may begin before the word that betrayed it.
        start = word_start(data, found.start())
        stop = found.start("quote") if found["quote"] else _name_end(low, found.start())
        name = data[start:stop].decode("ascii", "replace")
        kind = kind_of_name(name)
        weak = kind is None
        if kind is None:
            kind = weak_kind_of_name(name)
        short = kind is None and is_short_name(name)
        if kind is None and not short:
            at = stop
            continue
        kind = kind or "password"
        for first, last in _values(data, found, start, name, kind):
            text = data[first:last]
            if len(text) == 1 and name == "accesskey":  # an attribute of HTML: the key of a shortcut
                continue
            if is_stand_in(text) or (kind != "bearer" and is_description(name, text)):
                continue
            code = weak and kind == "token" and b"(" in text  # `"token=" + repr(x) + "..."`
            if is_like_password(text) if short else not weak or (looks_random(text, 8 if name[-1:] in "sS" else 12) and not code):
                at = max(at, last)  # looked through as a whole: what is nested in it is not asked again
                yield from secret_parts(data, kind, first, last)


_NAME_REST = late(rb"[a-z0-9_-]{0,64}+")


def _name_end(low: bytes, start: int) -> int:
    found = _NAME_REST.match(low, start)
    assert found is not None
    return found.end()


def _values(data: bytes, found: re.Match[bytes], start: int, name: str, kind: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the values that follow one name, if the values count as secrets."""
    if found["quote"] is None:
        if found["bare_open"] and data.endswith(found["bare_open"], 0, start):
            return  # the string ends where it began: `expect "password:"`
        if not found["bare_sep"] and not _is_before_string(data, start, name):
            return
        if found["triple"] and found["bare_sep"] == b":" and _LINE_END.match(data, found.end("bare_sep")):
            return  # the documentation of `class Cookie:`
        if found["call"] and not (found["bare_open"] and _is_password(data, *_quoted(data, found.end(), found["bare_open"]))):
            return  # a question: `password = ask_password("Your password")`
        if found["arrow"]:
            pointed = _POINTED.match(data, found.end())
            if pointed is not None:
                yield pointed.span("key" if pointed["key"] else "value")
        elif found["bare_open"] and not _closes(data, start, b"", found["bare_open"], found.end()):
            yield _quoted(data, found.end(), found["bare_open"])
        elif not found["bare_open"]:
            yield from _unquoted(data, found, start, name, kind)
    elif found["sep"] == b",":
        yield from _second_of_pair(data, found, start, name, kind)
    elif found["open"]:
        if not _closes(data, start, found["quote"], found["open"], found.end()):
            yield _quoted(data, found.end(), found["open"])
    else:  # as Node gives repeated headers: "set-cookie": ["...", "..."]
        item = _NEXT_ITEM.match(data, found.end() + 1)
        while item is not None and not _closes(data, start, found["quote"], item["open"], item.end()):
            first, last = _quoted(data, item.end(), item["open"])
            yield first, last
            item = _NEXT_ITEM.match(data, last + len(item["open"]))


def _is_before_string(data: bytes, start: int, name: str) -> bool:
    """Return True if the string after a name and a blank is the value of the name.

    Examples: `:password "X"` (Clojure), `#define PASSWORD "X"`, `set X-Api-Key "X"`.
    """
    before = data[max(0, start - 8) : start]
    return before.endswith((b":", b"#define ")) or (name[:2] in ("X-", "x-") and before.endswith((b"set ", b"add ", b"_header ")))


def _closes(data: bytes, start: int, quote: bytes, after: bytes, end: int) -> bool:
    """Return True if the quote after the name at `start` does not open a value, but ends a string in which the name stands.

    For example, a string may end in `password: ` (a prompt) or in `{"password":` (a chunk of a model's stream). The text
    after a quote that ends a string is not a value of the name.
    """
    if after.endswith(b'"'):  # the backslashes before it that are not its own belong to the text
        after = after[-(len(after) & -len(after)) :]
    if quote.endswith(b'"'):  # in JSON a name and its value are equally deep
        return after.endswith(b'"') and len(after) < (len(quote) & -len(quote))
    if after.endswith(b"'"):
        return data[end : end + 1] in (b")", b",") and _PROMPT.search(data, max(0, start - 240), start) is not None
    if not after.endswith(b'"') or _AFTER_STRING.match(data, end) is None:
        return False
    before = data.rfind(after, 0, start)
    while before > 0 and data[before - 1 : before] == b"\\":  # a quote of a deeper string
        before = data.rfind(after, 0, before)
    return before >= 0 and _BEFORE_STRING.search(data, max(0, before - 64), before) is not None


def _is_password(data: bytes, start: int, end: int) -> bool:
    return _WORD_LIKE.fullmatch(data, start, end) is not None and is_like_password(data[start:end])


def _quoted(data: bytes, start: int, quote: bytes) -> tuple[int, int]:
    """Return the content of the string that starts after `quote`.

    `quote` contains the backslashes before the quote, which show the depth of nesting.
    """
    if quote.endswith(b'"'):
        return start, string_end(data, start, len(quote) & -len(quote))
    end = _SINGLE.match(data, start)
    assert end is not None
    return start, end.end()


def _unquoted(data: bytes, found: re.Match[bytes], start: int, name: str, kind: str) -> Iterator[tuple[int, int]]:
    """Yield the place of a value without quotes, if the value counts as a secret.

    The value of a form field or an assignment always counts as a secret. In a text that may be prose or code, a value
    counts only if it looks like a secret.
    """
    sep, first = found["bare_sep"], found.end()
    if found["block"]:
        line = _HEADER_LINE.match(data, first)
        if line is not None:
            yield first, first + len(line[0].rstrip())
        return
    ticked = (_CELL if sep == b"| " else _TICKED).match(data, first)
    if ticked is not None or sep == b"| ":
        if ticked is not None:
            yield ticked.span("value")
        return
    if sep == b":" and data[max(0, start - 2) : start] == b"//":
        return  # the user of a URL; its password is another finder's
    if data[max(0, start - 4) : start] == b"--- ":
        return  # the result of a test of Go (`--- PASS: TestLogin2`)
    if sep == b":" and kind in ("bearer", "cookie"):
        line = _HEADER_LINE.match(data, first)
        if line is not None and (_SCHEME.match(line[0]) if kind == "bearer" else _COOKIE_LINE.match(line[0])):
            end = line.end() if kind == "cookie" else _bare_end(data, first)
            if not _is_reference(data, end):
                yield first, end
            return
    end = _bare_end(data, first)
    value = data[first:end]
    spaced = found.end("bare_sep") != first or data[found.start("bare_sep") - 1 : found.start("bare_sep")] in (b" ", b"\t")
    argument = data[max(0, start - 2) : start].rstrip(b" ").endswith((b"(", b",")) and not name.isupper()
    call = data[end : end + 1] in (b"(", b"[")
    code = sep in (b":", b"=>") or sep[:1] in (b"\\", b"\xef") or spaced or argument or call
    path = _CALL.fullmatch(value) is not None and data[end : end + 1] == b"(" and (b"." in value or spaced)
    reference = _is_reference(data, end) or is_same_name(name, value) or path
    if value and not reference and (not code or looks_random(value)):
        yield first, end


def _is_reference(data: bytes, end: int) -> bool:
    """Return True if the value without quotes that ends at `end` is the `$` of a reference, such as `${X}` or `$(x)`."""
    return data[end - 1 : end] == b"$" and data[end : end + 1] in (b"{", b"(")


def _bare_end(data: bytes, start: int) -> int:
    scheme = _SCHEME.match(data, start)
    value = _BARE.match(data, scheme.end() if scheme else start)
    if value is None:
        return start
    return value.end() - len(value[0]) + len(value[0].rstrip(b",.:"))


def _second_of_pair(data: bytes, found: re.Match[bytes], start: int, name: str, kind: str) -> Iterator[tuple[int, int]]:
    """Yield the place of a value whose name is the string before it: X in `["--api-key","X"]`."""
    if not found["open"]:
        return
    value = _NEXT_VALUE.match(data, found.start("open"))
    if value is not None:
        if not _closes(data, start, found["quote"], value["open"], value.end()):
            yield _quoted(data, value.end(), value["open"])
        return
    if _closes(data, start, found["quote"], found["open"], found.end()):
        return
    first, last = _quoted(data, found.end(), found["open"])
    text = data[first:last]
    if name.startswith("--"):
        sure = not text.startswith(b"-")
    elif _PAIR_BEFORE.search(data[max(0, start - 64) : start]):
        sure = True
    elif kind != "bearer" and _CALL_BEFORE.search(data[max(0, start - 64) : start]):  # the value of a missing variable, a setting
        sure = looks_random(text) and _WORD_LIKE.fullmatch(text) is not None
    else:  # a flat list: header names and values by turns, or a list of names (then no value looks like one)
        like = _SCHEME.match(text) if kind == "bearer" else b"=" in text if kind == "cookie" else looks_random(text)
        sure = bool(_HEADER_NAME.fullmatch(name)) and bool(like)
    if sure and kind_of_name(text.decode("ascii", "replace")) is None:
        yield first, last


# A comma separates cookies only before another NAME= (several Set-Cookie headers joined), not in `Expires=Wed, 21 Oct`.
_COOKIE = late(rb"\s*+([^=;,]*+)=?((?:[^;,]|,(?!\s*+[^;,=\s]++=))*+)[;,]?")
_COOKIE_ATTRIBUTES = (b"path", b"domain", b"expires", b"max-age", b"samesite", b"priority", b"version")


def secret_parts(data: bytes, kind: str, start: int, end: int) -> Iterator[Span]:
    """Yield the secret parts of a header value or another value.

    The scheme of an authorization and the names and attributes of cookies are not secret.
    """
    text = data[start:end]
    if kind == "bearer":
        scheme = _SCHEME.match(text)
        start += scheme.end() if scheme else 0
    elif kind == "cookie" and b"=" in text:
        at = 0
        while at < len(text):
            cookie = _COOKIE.match(text, at)
            if cookie is None or cookie.end() == at:
                return
            at = cookie.end()
            if cookie[2].strip() and cookie[1].strip().lower() not in _COOKIE_ATTRIBUTES:
                first = start + cookie.start(2)
                yield from _whole(data, kind, first, first + len(cookie[2].rstrip()))
        return
    yield from _whole(data, kind, start, end)


def _whole(data: bytes, kind: str, start: int, end: int) -> Iterator[Span]:
    text = data[start:end]
    if text.strip() and not is_placeholder(text) and not is_stand_in(text):
        yield Span(start, end, kind)


_FLAG = late(rb"--([a-z][a-z0-9-]{1,48}+)[ \t]{1,8}+(?!-)(?P<quote>\\{0,63}[\"'])?")
_IN_SINGLE = late(rb"[^'\"\\\r\n]++(?=')")


def find_flags(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the value after a flag for a secret in a command line: X in `--api-key X`.

    A flag is followed by a secret only if its value looks like one, because prose also contains flags.
    """
    for found in _FLAG.finditer(low):
        name = found[1].decode()
        kind = kind_of_name(name) or weak_kind_of_name(name)
        value = _flag_value(data, found.end(), found["quote"] or b"") if kind else None
        if kind and value and looks_random(value[0], 6):
            yield from secret_parts(data, kind, value.start(), value.end())


def _flag_value(data: bytes, start: int, quote: bytes) -> re.Match[bytes] | None:
    """Return the match of the value after a flag, or None.

    If the quote after a flag ends the string that contains the flag, the text after the quote is not a value.
    """
    if quote == b"'":
        return _IN_SINGLE.match(data, start)
    value = _BARE.match(data, start)
    return value if value and data.startswith(quote, value.end()) else None
