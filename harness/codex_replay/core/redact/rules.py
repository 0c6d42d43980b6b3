"""The rules for secrets as data (names that mark a value as secret, and forms of secrets), and the functions that apply these
rules.

Sources: auth.json and the token refresh in REAL-07 and REAL-15, the headers of REAL-24, and the published
prefixes of the common key issuers.
"""

from __future__ import annotations

from functools import lru_cache

from codex_replay.core.redact.text import late

# A name, in snake case, and what its value is. A longer name that ends in "_" and one of these means the same
# (chatgpt_account_id, x-api-key, newPassword).
NAMES: dict[str, str] = {
    **dict.fromkeys(("authorization",), "bearer"),
    **dict.fromkeys(("cookie", "cookies", "set_cookie"), "cookie"),
    **dict.fromkeys(
        (
            *("access_token", "refresh_token", "id_token", "auth_token", "bearer_token", "session_token", "oauth_token"),
            *("api_token", "csrf_token", "xsrf_token", "security_token", "personal_access_token", "secret_token"),
            *("github_token", "private_token", "job_token", "deploy_token", "code_verifier", "device_code", "user_code"),
            *("identity_token", "authorization_code", "auth_code", "device_auth_id", "saml_response", "saml_assertion"),
        ),
        "token",
    ),
    **dict.fromkeys(
        (
            *("api_key", "access_key", "access_key_id", "secret_key", "private_key", "signing_key"),
            *("encryption_key", "master_key", "subscription_key", "auth_key", "client_key_data", "preshared_key"),
            *("hmac_key", "secret_key_base", "shared_key", "account_key", "license_key", "application_key", "jfrog_art_api"),
            "honeycomb_team",
        ),
        "api-key",
    ),
    **dict.fromkeys(
        (
            *("account_id", "user_id", "organization_id", "organisation_id", "org_id"),
            *("openai_organization", "openai_project"),
        ),
        "account",
    ),
    **dict.fromkeys(
        (
            *("password", "passwd", "passphrase", "passcode", "passwort", "mot_de_passe", "secret", "client_secret"),
            *("snmp_community", "community_string"),
        ),
        "password",
    ),
}
_SQUASHED = {name.replace("_", ""): kind for name, kind in NAMES.items()}  # humps are no sure guide: APIKey, OpenAI-Project
# Too common to be taken at their word: the value must look like a secret as well ("token" names a log-probability's text).
WEAK_NAMES: dict[str, str] = {"token": "token", "auth": "token", "credential": "password"}
# Before `_token`: names of places in a list, and of the signs of a language model.
_NO_TOKENS = frozenset({"page", "next", "continuation", "sync", "cursor", "eos", "bos", "pad", "unk", "sep", "mask", "cls"})
# Before `_key` of a header: what the key only groups or finds.
_NO_KEYS = frozenset({"partition", "shard", "cache", "idempotency", "routing", "sort", "dedup"})

#: Words that stand directly before a short name (`dbpass`); `bypass` and `compass` are no names of passwords.
_SHORT_NAME = late(r"(?:db|sql|mysql|user|root|admin|login|mail|smtp|ftp)?(?:pass|pwd)")

# Environment-like names, upper snake case.
_ENV_PARTS = ("SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "PRIVATE_KEY", "APIKEY")
_ENV_ENDS = ("_KEY", "_TOKEN", "_AUTH", "_COOKIE", "_PASS", "_PWD")
_ENV_WHOLE = ("TOKEN", "APIKEY", "SSHPASS")
_ENV_HARMLESS = (
    *("PUBLIC_KEY", "PRIMARY_KEY", "FOREIGN_KEY", "CACHE_KEY", "MAX_TOKEN", "_TOKEN_LIMIT"),
    *("SECRET_NAME", "SECRET_FILE", "SECRET_ARN", "PASSWORD_FILE", "KEY_FILE", "KEY_NAME", "APPLICATION_CREDENTIALS"),
    *("_PATH", "_DIR", "_URL", "_LENGTH", "_COUNT", "_LIMIT", "_TIMEOUT", "_TTL", "_HASHERS", "_POLICY", "_HEADER"),
)
_ENV_NAME = late(r"[A-Z][A-Z0-9_]*\Z")
_HUMP = late(r"([a-z0-9])([A-Z])")

# A word that each name above must contain, in lower case: the finders search for it. A test keeps the two in step.
NAME_WORDS = (
    *("token", "secret", "credential", "key", "auth", "cookie", "account", "user_id", "user-id"),
    *("userid", "organi", "org_id", "org-id", "orgid", "openai-project", "openai_project", "openaiproject", "verifier"),
    *(
        "device_code",
        "device-code",
        "devicecode",
        "user_code",
        "user-code",
        "usercode",
        "pass",
        "pwd",
        "art-api",
        "art_api",
        "artapi",
        "saml",
        "communit",
        "honeycomb",
    ),
)


#: Values that stand for a secret: references to a variable, templates (also cut off by the end of a chunk), words of an example.
_STAND_INS = late(
    rb"\$\{[A-Za-z_]\w*(?::?[?+][^{}]*|:?[-=])?\}|\$(?:\{\w*)?|\$\([^\r\n]*|`[^`\r\n]*`|\$?\{\{[^{}]*+(?:\}\}?)?"
    rb"|<[\w .-]+>\]?|\[[A-Za-z]+(?: [a-z]+)+\]|realm="
    rb"|\.+|\*+|\.[*+].*|(?:\xe2\x80\xa2|\\{1,64}u2022)+|%(?:\(\w+\))?s|:[a-z_]+|\{[\w.]+\}|[0-9]+(?:\.[0-9]+)+"
    rb"|(?:projects/|arn:aws|op://|vault:)[^\s]+"
    rb"|(?i:none|null|true|false|undefined|nil|yes|no|ok|dummy|placeholder|change-?me|x{3,40}|password|passwd|pass|pw|secret)"
    rb"|(?i:required|nullable|sometimes)(?:\|[^\s]*)?|\.{1,2}/[^\s]*"  # a rule of Laravel, a file
    rb"|(?i:your[-_ ][a-z_ -]{2,40})|\[?(?i:redacted|filtered)\]?/?|\$[0-9@*]|(?:sk|pk|rk|ghp|hf)[-_](?:\.{3})?"
)
_VARIABLE = late(rb"\$([A-Za-z_]\w*)")
_SHORT_VARIABLE = 4  # characters: `$PW`


def is_stand_in(value: bytes) -> bool:
    """Return True if a value only refers to a secret, or is an example: `$OPENAI_API_KEY`, `${X}`, `$(pass show x)`, `changeme`.

    `$ECRET` may be a secret.
    """
    variable = _VARIABLE.fullmatch(value)
    if variable is None:
        return _STAND_INS.fullmatch(value) is not None
    name = variable[1].decode()
    return len(name) <= _SHORT_VARIABLE or "_" in name or kind_of_name(name) is not None or is_short_name(name)


def is_same_name(name: str, value: bytes) -> bool:
    """Return True if a value repeats its name and therefore is code, as in `api_key=api_key` and `api_key=settings.API_KEY`.

    The value is code, too, if it is a path that ends in the name of any secret (`client_secret=self.consumer.secret`).
    """
    path = value.decode("ascii", "replace")
    if not path.replace(".", "_").isidentifier():
        return False
    last = path.rsplit(".", 1)[-1]
    telling = "." in path and (kind_of_name(last) or weak_kind_of_name(last) or is_short_name(last))
    own, word = name.rsplit(".", 1)[-1].strip("-_").lower(), last.strip("_")
    if own in ("cookie", "cookies"):  # `cookies=merged_cookies`: a cookie has a name and a value
        return word.lower().endswith(own)
    return bool(telling) or word.lower() == own or (word[:1].isupper() and word.rstrip("0123456789").lower() == own)


_NO_LETTERS = late(r"[^a-z0-9]")
_SENTENCE = late(rb"(?i).*\b(?:passwords?|passphrase|secrets?|tokens?|keys?)\b")


def is_description(name: str, value: bytes) -> bool:
    """Return True if a string only repeats its name (`DELETE_COOKIE = "deleteCookie"`), or is a sentence about a secret.

    No word of a description looks like a secret: `"password": "The password of the user, 8-64 characters"`.
    """
    last = _NO_LETTERS.sub("", name.rsplit(".", 1)[-1].lower())
    if _NO_LETTERS.sub("", value.decode("ascii", "replace").lower()) == last:
        return True
    words = value.split()
    return len(words) > 1 and _SENTENCE.match(value) is not None and not any(looks_random(word, 6) for word in words)


@lru_cache(maxsize=4096)
def kind_of_name(name: str) -> str | None:
    """Return the kind of secret that a name marks ("bearer", "token", "api-key", ...), or None for a harmless name.

    Names in snake case, camel case, kebab case and the form of environment variables are recognised; a dot ends a name
    (`a.b.api_key`).
    """
    last = name.rsplit(".", 1)[-1].strip("-_")
    snake = _HUMP.sub(r"\1_\2", last).replace("-", "_").lower()
    words = snake.split("_")
    for start in range(len(words)):
        kind = _SQUASHED.get("".join(words[start:]))
        if kind is not None:
            return "env" if kind == "password" and _ENV_NAME.match(last) else kind
    # the header of a service: X-Vault-Token, x-functions-key
    if words[0] == "x" and words[-1] in ("token", "key") and words[-2] not in _NO_KEYS:
        return "token" if words[-1] == "token" else "api-key"
    if last.startswith("TF_TOKEN_"):  # a host's name follows
        return "env"
    if not _ENV_NAME.match(last) or last.endswith(_ENV_HARMLESS):
        return None
    telling = last in _ENV_WHOLE or last.endswith(_ENV_ENDS) or any(part in last for part in _ENV_PARTS)
    return "env" if telling else None


def is_short_name(name: str) -> bool:
    """Return True for a name that may belong to a password or to a harmless value (`pass`, `pwd`, `dbPass`)."""
    last = name.rsplit(".", 1)[-1].strip("-_")
    return _SHORT_NAME.fullmatch(_HUMP.sub(r"\1_\2", last).replace("-", "_").lower().rsplit("_", 1)[-1]) is not None


def is_like_password(text: bytes) -> bool:
    """Return True if a text may be a password: it is not a path, a number or a plain word."""
    if (
        len(text) < 4
        or _ASSIGNMENT.match(text)
        or text[:1] in b"/~.$%"
        or b"/" in text
        or b"\\" in text
        or _LETTER.search(text) is None
    ):
        return False
    return _DIGIT.search(text) is not None or _SIGN.search(text) is not None


def weak_kind_of_name(name: str) -> str | None:
    """Return the kind of secret that a weak name (such as `slack_bot_token`) marks.

    A weak name marks a secret only if its value also looks like a secret.
    """
    last = name.rsplit(".", 1)[-1].strip("-_")
    words = _HUMP.sub(r"\1_\2", last).replace("-", "_").lower().split("_")
    weak = WEAK_NAMES.get(words[-1]) if len(words) == 1 or words[-1] == "token" else None
    if last[-1:] in "sS" and words[-1] not in ("pass", "secrets"):  # a list of names of secrets, or of secrets
        weak = kind_of_name(last[:-1])
    return None if len(words) > 1 and words[-2] in _NO_TOKENS else weak


# Keys with a known prefix: the lower-case text to search for, and the form; its group is the prefix, which stays.
# `is_sk_key` also checks `sk-`.
KEY_FORMS: tuple[tuple[str, str], ...] = (
    ("sk-", "(sk-)[A-Za-z0-9_-]*+"),
    *((f"gh{kind}_", f"(gh{kind}_)[A-Za-z0-9]{{10,}}+") for kind in "pousr"),
    ("github_pat_", "(github_pat_)[A-Za-z0-9_]{10,}+"),
    ("glpat-", r"(glpat-)[A-Za-z0-9_-]{12,}+(?:\.[0-9a-z]{2}\.[0-9a-z]{7,9})?"),
    ("akia", "(AKIA)[0-9A-Z]{12,}+"),
    ("asia", "(ASIA)[0-9A-Z]{12,}+"),
    ("xox", "(xox[abceoprs]-)[A-Za-z0-9-]{8,}+"),
    ("xapp-", "(xapp-)[A-Za-z0-9-]{8,}+"),
    ("aiza", "(AIza)[A-Za-z0-9_-]{20,}+"),
    ("ya29.", r"(ya29\.)[A-Za-z0-9_-]{16,}+"),
    ("hf_", "(hf_)[A-Za-z0-9]{20,}+"),
    ("npm_", "(npm_)[A-Za-z0-9]{30,}+"),
    ("k_live_", "([srp]k_live_)[A-Za-z0-9]{10,}+"),
    ("k_test_", "([srp]k_test_)[A-Za-z0-9]{10,}+"),
)
KEY_FORM = late("|".join(form for _, form in KEY_FORMS).encode())
UUID = late(rb"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")
JWT = late(rb"(eyJ[A-Za-z0-9_-]*+)((?:\.[A-Za-z0-9_-]*+){0,4}+)")
EMAIL = late(rb"[^\s@\"'\\]{1,128}@[^\s@\"'\\]{1,255}\.[A-Za-z]{2,24}")

_SK_FAMILY = late(rb"sk-(?:proj|svcacct|admin|ant|or|live|test|None)-[A-Za-z0-9_-]{6,}")
_SK_NAME = late(rb"sk(?:-[a-z]{1,12}|-[0-9]{1,3})+")  # `sk-learn-contrib-0`
_DIGIT = late(rb"[0-9]")
_LETTER = late(rb"[A-Za-z]")
_APP_PASSWORD = late(rb"[a-z]{4}(?:-[a-z]{4}){3}(?![a-zA-Z0-9_-])")  # Apple: of one program
_SIGN = late(rb"[!#@^*+?]")
_ASSIGNMENT = late(rb"[a-z][a-z0-9_]{0,15}=[a-z0-9]+\Z")  # of code or a log: `pass1=ok`


def is_sk_key(text: bytes) -> bool:
    """Return True for a key of the form `sk-...`, and False for an ordinary word that begins with `sk-` (`sk-learn-contrib`)."""
    if _SK_FAMILY.match(text):
        return True
    if _SK_NAME.fullmatch(text):
        return False
    return len(text) >= 24 or (len(text) >= 11 and _DIGIT.search(text) is not None)


def looks_random(text: bytes, least: int = 8) -> bool:
    """Return True if a word without quotes looks like a secret, and not like a plain word, a type or a number in code."""
    if KEY_FORM.match(text) and (not text.startswith(b"sk-") or is_sk_key(text)):
        return True
    if len(text) < least or _LETTER.search(text) is None:
        return False
    if _APP_PASSWORD.match(text):
        return True
    return _DIGIT.search(text) is not None or (len(text) >= 32 and b"." not in text and b"/" not in text)
