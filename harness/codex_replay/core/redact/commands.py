"""Secrets in a command line, a form or an address: the password after `curl -u ann:`, `sshpass -p`, in a netrc.

Separators are spaces, or what parts two arguments of an argv in JSON at any depth (`","`). All patterns are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial

from codex_replay.core.redact.placeholders import is_placeholder
from codex_replay.core.redact.text import Finder, Span

_NEXT = r"(?:[ \t]{1,8}+|\\{0,63}[\"'],[ \t]{0,4}+)\\{0,63}[\"']?"
_VALUE = r"(?P<secret>(?![-$<{(])[^\x00-\x20\"'\\|;&<>]{1,256}+)"
_WITHIN = r"(?:(?![\r\n|;])[\x00-\xff]){0,512}?"
_EOL = r"(?:\r?\n|\\{1,64}r\\{1,64}n|\\{1,64}n)"
_HARMLESS = re.compile(rb"[0-9]{1,6}|(?i:true|false|null|none|yes|no|ok|password|passwd|secret|\*+|x+|\.+)")

_PASSWORD_OPTION = r"--(?:http-|ftp-|proxy-)?password"
_AWS = r"(?:aws_secret_access_key|aws_session_token|aws_access_key_id)"
_FIELD = r"[\w.-]{0,32}(?i:password|passwd|passphrase|secret|token|api_key|apikey)"
_PART_HEADERS = rf"(?:[A-Za-z-]{{1,32}}:[^\r\n\\]{{0,128}}{_EOL}){{0,3}}"

#: The word that a form begins with, the rest of the form with its `secret`, and what that is.
FORMS: tuple[tuple[str, str, str], ...] = (
    ("curl", rf"{_WITHIN}(?<![\w-])(?:-u|--user|--proxy-user|-U)(?:=|{_NEXT})[^\s\"':\\]{{0,128}}:{_VALUE}", "password"),
    ("wget", rf"{_WITHIN}(?<![\w-]){_PASSWORD_OPTION}(?:=|{_NEXT}){_VALUE}", "password"),
    ("sshpass", rf"{_NEXT}-p(?:{_NEXT})?{_VALUE}", "password"),
    ("mysql", rf"(?:dump|admin|import|show)?\b{_WITHIN}(?<![\w-])-p{_VALUE}", "password"),
    ("mariadb", rf"(?:-[a-z]+)?{_WITHIN}(?<![\w-])-p{_VALUE}", "password"),
    ("redis-cli", rf"{_WITHIN}(?<![\w-])-a{_NEXT}{_VALUE}", "password"),
    (
        "login",
        rf"[ \t]{{1,8}}[^\s\"'\\]{{1,128}}(?:[ \t]{{1,8}}|{_EOL}[ \t]{{0,8}})(?:password|passwd)[ \t]{{1,8}}{_VALUE}",
        "password",
    ),
    ("configure", rf"{_NEXT}set{_NEXT}[\w.-]{{0,64}}{_AWS}{_NEXT}{_VALUE}", "api-key"),
    (
        "form-data",
        rf";[ ]?name=\\{{0,63}}[\"']?{_FIELD}\\{{0,63}}[\"']?{_EOL}{_PART_HEADERS}{_EOL}{_VALUE}",
        "password",
    ),
    ("accountkey=", r"(?P<secret>[A-Za-z0-9+/%]{20,}+={0,2})", "api-key"),
    ("sharedaccesskey=", r"(?P<secret>[A-Za-z0-9+/%]{20,}+={0,2})", "api-key"),
    ("sig=", r"(?i)(?<=[?&;]sig=)(?P<secret>[A-Za-z0-9%+/_-]{20,}+=*)", "token"),
    ("signature=", r"(?i)(?<=[?&;-]signature=)(?P<secret>[A-Za-z0-9%+/_-]{20,}+=*)", "token"),
    ("code=", r"(?i)(?<=[?&]code=)(?P<secret>(?=[A-Za-z._~%-]{0,256}[0-9])[A-Za-z0-9._~%-]{10,}+)", "token"),
    ("1//0", r"(?P<secret>[A-Za-z0-9_-]{30,}+)", "token"),
    ("hooks.slack.com/", r"(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{16,}+)", "token"),
    ("/api/webhooks/", r"(?P<secret>[0-9]{15,22}/[A-Za-z0-9_-]{30,}+)", "token"),
)


_compiled = lru_cache(maxsize=None)(re.compile)  # at the first need: most are never met


def find_in_form(trigger: bytes, form: bytes, kind: str, data: bytes, low: bytes) -> Iterator[Span]:
    """Yield what is at the form's `secret`, wherever the form's first word is met."""
    at = low.find(trigger)
    while at >= 0:
        found = _compiled(form).match(data, at + len(trigger))
        if found is not None:
            start, end = found.span("secret")
            secret = data[start:end]
            if not is_placeholder(secret) and not _HARMLESS.fullmatch(secret):
                yield Span(start, end, kind)
        at = low.find(trigger, at + 1)


COMMANDS: tuple[Finder, ...] = tuple(
    Finder(word, partial(find_in_form, word.encode(), form.encode("latin-1"), kind)) for word, form, kind in FORMS
)
