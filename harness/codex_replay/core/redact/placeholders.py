"""The placeholders that replace secrets.

Each placeholder has the form of its secret, so that a reader, a schema and a JWT parser accept the placeholder.

One object of `Placeholders` always gives the same placeholder for the same secret, whatever the secret's escaping and name.
Placeholders are never replaced again, even if another program wrote them.
"""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import unquote_to_bytes

from codex_replay.core.redact.rules import EMAIL, JWT, KEY_FORM, UUID, is_sk_key, kind_of_name
from codex_replay.core.redact.text import late

_UUID_START = b"0edac7ed-0000-4000-8000-"
_MAIL_END = b"@redacted.example"
_SIGNATURE_START = b"cmVkYWN0ZWQt"  # base64url of "redacted-"
_PREFIXES = rb"sk-|gh[pousr]_|github_pat_|glpat-|AKIA-|ASIA-|xox[abceoprs]-|xapp-|AIza-|ya29\.|hf_|npm_|[srp]k_(?:live|test)_"
_OWNERS = rb"user-|org-|proj_|acct_"
_NUMBERED = late(
    rb"(?P<word>(?:" + _PREFIXES + rb"|" + _OWNERS + rb")?redacted-(?:[a-z]{2,9}-){0,2})(?P<n>[1-9][0-9]{0,8})(?![0-9])"
)
_NUMBERED_MAIL = late(rb"(?P<word>user-)(?P<n>[1-9][0-9]{0,8})(?:@|%40)redacted\.example")
_NUMBERED_UUID = late(_UUID_START + rb"(?P<n>[0-9]{12})(?![0-9A-Za-z])")
_NUMBERED_JWT = late(rb"\." + _SIGNATURE_START + rb"(?P<sig>[A-Za-z0-9_-]{2,12})(?![A-Za-z0-9_-])")
_OWNER = late(_OWNERS)
_HOME_NAME = late(rb"user(?:-[1-9][0-9]{0,8})?")

# What a kind is called inside a placeholder, where its own name would not do.
_WORDS = {"api-key": "key", "env": "secret", "url-password": "password"}
# Claims that do not identify a person, and that clients read (REAL-08: chatgpt_plan_type).
_HARMLESS_CLAIMS = frozenset(
    {"alg", "typ", "iss", "aud", "scp", "scope", "amr", "acr", "client_id", "azp", "auth_provider", "token_type", "enc"}
    | {"chatgpt_plan_type", "plan_type", "locale", "zoneinfo"}
)
_DATE = late(r"\d{4}-\d\d-\d\d([T ][\d:.]+(Z|[+-]\d\d:?\d\d)?)?\Z")


def is_placeholder(text: bytes) -> bool:
    """Return True if `text` is a placeholder, from beginning to end."""
    if b"redacted" not in text and not text.startswith((_UUID_START, b"eyJ")):
        return False
    if _NUMBERED.fullmatch(text) or _NUMBERED_MAIL.fullmatch(text) or _NUMBERED_UUID.fullmatch(text):
        return True
    jwt = JWT.fullmatch(text)
    return jwt is not None and is_redacted_jwt(text)


def placeholders_in(text: str) -> list[tuple[str, bytes]]:
    """Return the placeholders in a text, in order, each with its series (the placeholder without its number).

    The series of a JWT is `jwt`.
    """
    data = text.encode("utf-8", "replace")
    found = [(one.start(), one[0], one["word"]) for pattern in (_NUMBERED, _NUMBERED_MAIL) for one in pattern.finditer(data)]
    found += [(one.start(), one[0], b"jwt") for one in JWT.finditer(data) if is_redacted_jwt(one[0])]
    return [(placeholder.decode(), series) for _, placeholder, series in sorted(found)]


def is_redacted_jwt(text: bytes) -> bool:
    """Return True if a JWT has the signature that a redaction puts in place of the original one."""
    sign = _NUMBERED_JWT.search(text)
    return sign is not None and sign.end() == len(text) and _number_of_signature(sign["sig"]) is not None


def is_home_placeholder(name: bytes) -> bool:
    """Return True if the name of a home directory is a placeholder."""
    return _HOME_NAME.fullmatch(name) is not None


def canonical(secret: bytes) -> bytes:
    """Return a secret without JSON escapes (at any depth) and percent escapes.

    All spellings of one secret give the same result.
    """
    for _ in range(8):
        if b"\\" not in secret:
            break
        try:
            secret = json.loads(b'"' + secret + b'"').encode("utf-8", "surrogatepass")
        except ValueError:
            secret = secret.replace(b"\\", b"")
    return unquote_to_bytes(secret) if b"%" in secret else secret


class Placeholders:
    """A table of the placeholders given so far, by secret, and of the numbers that are already used."""

    def __init__(self) -> None:
        self._made: dict[bytes, bytes] = {}
        self._homes: dict[bytes, bytes] = {}
        self._taken: dict[bytes, int] = {}

    def reserve(self, data: bytes) -> None:
        """Reserve the placeholder numbers in `data`, which another program has redacted earlier."""
        if b"redacted" in data:
            for pattern in (_NUMBERED, _NUMBERED_MAIL):
                for found in pattern.finditer(data):
                    self._take(found["word"], int(found["n"]))
        if _UUID_START in data:
            for found in _NUMBERED_UUID.finditer(data):
                self._take(_UUID_START, int(found["n"]))
        if _SIGNATURE_START in data:
            for found in _NUMBERED_JWT.finditer(data):
                self._take(_SIGNATURE_START, _number_of_signature(found["sig"]) or 0)

    def of(self, kind: str, secret: bytes) -> bytes:
        """Return the placeholder that replaces a secret.

        The placeholder has the shape of the secret if that shape is known, otherwise the form `redacted-<kind>-N`.
        """
        if is_placeholder(secret):
            return secret
        key = canonical(secret)
        made = self._made.get(key)
        if made is None:
            # The number is taken before the shape is made: a JWT's claims take numbers of their own.
            made = self._made[key] = key if is_placeholder(key) else self._shape(kind, key)
        return made

    def home(self, name: bytes) -> bytes:
        """Return the placeholder for a user's home directory: user, user-2, ..."""
        name = canonical(name)
        if name not in self._homes:
            number = len(self._homes) + 1
            self._homes[name] = b"user" if number == 1 else b"user-%d" % number
        return self._homes[name]

    def _shape(self, kind: str, secret: bytes) -> bytes:
        if UUID.fullmatch(secret):
            return _UUID_START + b"%012d" % self._next(_UUID_START)
        jwt = JWT.fullmatch(secret)
        if jwt is not None and jwt[2].count(b".") >= 1:
            return self._jwt(secret)
        form = KEY_FORM.match(secret)
        if form is not None and form.end() == len(secret) and (not secret.startswith(b"sk-") or is_sk_key(secret)):
            prefix = next(group for group in form.groups() if group is not None)
            return self._numbered(prefix if prefix.endswith((b"-", b"_", b".")) else prefix + b"-")
        if EMAIL.fullmatch(secret):
            return b"user-%d" % self._next(b"user-") + _MAIL_END
        owner = _OWNER.match(secret)
        if owner is not None:
            return self._numbered(owner[0])
        return self._numbered(b"", _WORDS.get(kind, kind).encode() + b"-")

    def _numbered(self, prefix: bytes, word: bytes = b"") -> bytes:
        start = prefix + b"redacted-" + word
        return start + b"%d" % self._next(start)

    def _next(self, series: bytes) -> int:
        self._taken[series] = self._taken.get(series, 0) + 1
        return self._taken[series]

    def _take(self, series: bytes, number: int) -> None:
        self._taken[series] = max(self._taken.get(series, 0), number)

    def _jwt(self, token: bytes) -> bytes:
        """Return a valid JWT with the same claims, harmless values, and a signature that contains the placeholder's number."""
        signature = _unpadded(b"redacted-%d" % self._next(_SIGNATURE_START))
        head, payload, *_ = token.split(b".")
        parts = [_decoded(head) or {"alg": "none", "typ": "JWT"}, _decoded(payload) or {}]
        safe = [_unpadded(json.dumps(self._claims(part), separators=(",", ":")).encode()) for part in parts]
        return b".".join([*safe, signature])

    def _claims(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            # The name of a claim may identify a person too (a mapping by e-mail), so it goes through the same table.
            return {self._claim_name(key): self._claims(below, key) for key, below in value.items()}
        if isinstance(value, list):
            return [self._claims(below, name) for below in value]
        if not isinstance(value, str) or not value:
            return value
        if _DATE.match(value) or (name in _HARMLESS_CLAIMS and "@" not in value):
            return value
        return self.of(kind_of_name(name) or "claim", value.encode("utf-8", "surrogatepass")).decode("latin-1")

    def _claim_name(self, name: str) -> str:
        return self.of("email", name.encode()).decode() if "@" in name and EMAIL.fullmatch(name.encode()) else name


def _number_of_signature(rest: bytes) -> int | None:
    try:
        digits = base64.urlsafe_b64decode(rest + b"=" * (-len(rest) % 4))
    except ValueError:
        return None
    return int(digits) if digits.isdigit() and _unpadded(digits) == rest else None


def _unpadded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _decoded(part: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
