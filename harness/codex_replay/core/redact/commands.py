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
_VALUE = r"(?P<secret>(?![-$<{(\])])[^\x00-\x20\"'\\|;&<>]{1,256}+)"
_WITHIN = r"(?:(?![\r\n|;])[\x00-\xff]){0,512}?"
_EOL = r"(?:\r?\n|\\{1,64}r\\{1,64}n|\\{1,64}n)"
#: Ports and their pairs (`docker run --name mysql -p3306:3306`), and words that stand for a password.
_HARMLESS = re.compile(
    rb"(?:[0-9.]{7,15}:)?[0-9]{1,6}(?::[0-9]{1,6})?|(?i:true|false|null|none|yes|no|ok|password|passwd|secret|\*+|x+|\.+)"
)

_OPTIONS = r"(?:(?![\r\n|;]|&&|\\{1,63}[nr])[\x00-\xff]){0,512}?"  # of one command
_FLAGS = rf"(?:{_NEXT}-[A-OQ-Za-z]{{1,4}}){{0,4}}"
_LIKE = rf"(?=[^\s\"'\\\\]{{0,256}}[0-9!#@^*+?]){_VALUE}"  # after an option that is often something else
_RANDOM = r"(?=[^\s\"'<>\\]{0,256}[0-9])"
_TELLING = r"[A-Z][A-Z0-9_]{0,64}(?:TOKEN|SECRET|PASSWORD|PASSWD|_KEY|APIKEY)"
_TELLING_NAME = r"[\w.:-]{0,48}(?i:password|passwd|passphrase|secret|token|api_?key)"
_ATTRIBUTE = rf"\\{{0,63}}[\"']{_TELLING_NAME}\\{{0,63}}[\"'][ \t]{{1,8}}value=\\{{0,63}}[\"'](?P<secret>[^\s\"'\\<>]{{1,256}}+)"
_KEY_LINES = rf"(?P<secret>(?!redacted-)[A-Za-z0-9+/=]{{1,64}}(?:{_EOL}(?![A-Za-z-]{{1,32}}:)[A-Za-z0-9+/=]{{1,64}}){{0,99}}+)"
_CRYPT = r"[./A-Za-z0-9]"

#: A password's hash, after the first `$`: bcrypt, SHA-crypt, yescrypt, argon2.
_HASH = (
    rf"2[aby]\$[0-9]{{2}}\${_CRYPT}{{53}}|[56]\$(?:rounds=[0-9]{{1,9}}\$)?{_CRYPT}{{1,16}}\$(?:{_CRYPT}{{86}}|{_CRYPT}{{43}})"
    rf"|y\${_CRYPT}{{2,16}}\${_CRYPT}{{1,64}}\${_CRYPT}{{43}}"
    rf"|argon2i?d?\$v=[0-9]{{1,3}}\$m=[0-9,tp=]{{5,40}}\$[A-Za-z0-9+/]{{8,64}}\$[A-Za-z0-9+/]{{16,128}}"
)

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
    ("smbclient", rf"{_OPTIONS}(?<![\w-])-U(?:{_NEXT})?[^\s%\"'\\]{{1,128}}%{_VALUE}", "password"),
    ("ldap", rf"(?:search|modify|add|delete|whoami|passwd|compare){_OPTIONS}(?<![\w-])-w(?:{_NEXT})?{_LIKE}", "password"),
    (
        "login",
        rf"(?:(?<=docker.login)|(?<=podman.login)|(?<=skopeo.login)|(?<=docker\",\"login)){_OPTIONS}(?<![\w-])-p(?:=|{_NEXT}){_LIKE}",
        "password",
    ),
    ("--service-principal", rf"{_OPTIONS}(?<![\w-])-p(?:=|{_NEXT}){_LIKE}", "password"),
    ("mongo", rf"(?:sh|dump|restore|export|import)\b{_OPTIONS}(?<![\w-])-p(?:=|{_NEXT}){_LIKE}", "password"),
    ("sqlcmd", rf"{_OPTIONS}(?<![\w-])-P(?:{_NEXT})?{_LIKE}", "password"),
    ("zip", rf"{_FLAGS}{_NEXT}-P{_NEXT}{_LIKE}", "password"),
    ("7z", rf"[ar]?{_NEXT}[adelrtux]\b{_OPTIONS}(?<![\w-])-p{_LIKE}", "password"),
    *(
        (f"http{end}", rf"(?:=|{_NEXT})[^\s\"':\\]{{1,128}}:{_VALUE}", "password")
        for end in (" -a", "s -a", " --auth", "s --auth")
    ),
    ("lftp", rf"{_OPTIONS}(?<![\w-])-u(?:{_NEXT})?[^\s,\"'\\]{{1,128}},{_VALUE}", "password"),
    ("echo ", rf"[\"']?(?=[^\s|]{{0,256}}[0-9!#@^*+?]){_VALUE}[\"']?[ \t]{{0,8}}\|[ \t]{{0,8}}sudo[ \t]{{1,8}}-S", "password"),
    (":5432:", rf"[\w*.-]{{1,64}}:[\w*.-]{{1,64}}:{_VALUE}", "password"),
    ("env ", rf"(?:(?<=ENV )|(?<=setenv )){_TELLING}[ \t]{{1,8}}{_RANDOM}(?=[^\s]{{12}}){_VALUE}", "secret"),
    ("set -", rf"[gxU]{{1,3}}[ \t]{{1,8}}{_TELLING}[ \t]{{1,8}}\\{{0,63}}[\"']?{_RANDOM}(?=[^\s]{{12}}){_VALUE}", "secret"),
    ("key=", _ATTRIBUTE, "password"),
    ("name=", _ATTRIBUTE, "password"),
    ("$", rf"(?P<secret>(?<=access_token\$)(?:production|sandbox)\$[0-9a-z]{{16}}\$[0-9a-f]{{32}}|{_HASH})", "password"),
    ("1000.", r"(?P<secret>[0-9a-f]{32}\.[0-9a-f]{32})(?![0-9a-f])", "token"),
    ("response=", r"\\{0,63}\"(?P<secret>[0-9a-f]{32}|[0-9a-f]{64})\\{0,63}\"", "token"),
    ("signature=", r"(?i)(?<=[\s,]signature=)(?P<secret>[0-9a-f]{64})(?![0-9a-f])", "token"),
    (
        "private-lines:",
        rf"[ \t]{{0,4}}[0-9]{{1,3}}{_EOL}{_KEY_LINES}",
        "private-key",
    ),
    (".webhook.office.com/", r"webhookb2/(?P<secret>[0-9A-Za-z@/_-]{40,}+)", "token"),
    ("hooks.zapier.com/", r"hooks/catch/(?P<secret>[0-9]{4,}/[A-Za-z0-9]{5,}+)", "token"),
    ("/api/webhooks/", r"(?P<secret>[0-9]{15,22}/[A-Za-z0-9_-]{30,}+)", "token"),
)


#: The private members of a JSON web key, at any depth of nesting.
_JWK_PART = re.compile(rb"\\{0,63}\"(?:d|k|p|q|dp|dq|qi)\\{0,63}\"\s{0,8}:\s{0,8}\\{0,63}\"([A-Za-z0-9_-]{16,}+)")


def find_jwks(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the private members of the objects that have a `kty`."""
    at = low.find(b"kty")
    while at >= 0:
        start, end = data.rfind(b"{", max(0, at - 8192), at), data.find(b"}", at, at + 8192)
        if start >= 0 and end >= 0:
            for found in _JWK_PART.finditer(data, start, end):
                if not is_placeholder(found[1]):
                    yield Span(*found.span(1), "private-key")
        at = low.find(b"kty", max(at + 3, end))  # an object is looked through once


_ELEMENT = re.compile(
    rb"(?i)<(?:[\w-]{1,32}:)?(?:(?:password|passwd|passphrase)(?: [^<>]{0,128})?>"
    rb"|(?:token|secret|api_?key)(?: [^<>]{0,128})?>(?=[^\s<>]{0,256}[0-9]))(?![-$<{(])([^\s\"'\\<>]{1,256}+)</"
)


def find_elements(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the content of an element of XML whose name says that it is a password."""
    for found in _ELEMENT.finditer(data):
        if not is_placeholder(found[1]) and not _HARMLESS.fullmatch(found[1]):
            yield Span(*found.span(1), "password")


_compiled = lru_cache(maxsize=None)(re.compile)  # at the first need: most are never met


def find_in_form(trigger: bytes, form: bytes, kind: str, data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the span of the `secret` group at each place where the first word of the form occurs."""
    at = low.find(trigger)
    while at >= 0:
        found = _compiled(form).match(data, at + len(trigger))
        if found is not None:
            start, end = found.span("secret")
            secret = data[start:end]
            if not is_placeholder(secret) and not _HARMLESS.fullmatch(secret):
                yield Span(start, end, kind)
        at = low.find(trigger, at + 1)


COMMANDS: tuple[Finder, ...] = (
    *(Finder(word, partial(find_in_form, word.encode(), form.encode("latin-1"), kind)) for word, form, kind in FORMS),
    Finder("</", find_elements),
    Finder("kty", find_jwks),
)
