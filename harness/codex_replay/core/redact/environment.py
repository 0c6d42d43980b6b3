"""Find the environment variables that hold secrets, and return the secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from codex_replay.core.redact.rules import is_like_password, is_short_name, kind_of_name, weak_kind_of_name
from codex_replay.core.redact.text import late

SHORTEST = 6  # characters: a shorter value ("1", "true", "none") is a setting rather than a secret
#: A key in base64 may begin with a slash as a path does.
_BASE64 = r"(?=[^\d]*\d)(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?:/[A-Za-z0-9+/]{18,}={1,2}|/[A-Za-z0-9+/]{39})\Z"
_PLAIN = late(rf"[0-9.:,-]+|[a-z]+(?:[-_ ][a-z]+)*|(?!{_BASE64})[~./].*|[A-Za-z]:\\.*|\$.*", re.DOTALL)
_IN_URL = late(r"[a-z][a-z0-9+.-]*://[^\s:/@]*:(?P<password>[^\s/@]+)@", re.IGNORECASE)


def environment_secrets(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (name, secret) for each variable that holds a secret, without white space around the secret.

    A variable holds a secret if its value is a URL with a password. A variable also holds a secret if its name looks like one
    (`OPENAI_API_KEY`, `*_TOKEN`, `*SECRET*`, `DB_PASS`) and its value is not a path, a number or lower-case words.
    """
    for name, value in environ.items():
        secret = value.strip()
        for found in _IN_URL.finditer(secret):
            if len(found["password"]) >= SHORTEST:
                yield name, found["password"]
        if len(secret) < SHORTEST or _PLAIN.fullmatch(secret):
            continue
        report = kind_of_name(name) or kind_of_name(name.upper()) or weak_kind_of_name(name)
        if report or (is_short_name(name) and is_like_password(secret.encode("utf-8", "surrogateescape"))):
            yield name, secret
