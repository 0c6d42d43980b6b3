"""Laws of the redactor, on generated text and JSON."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from codex_replay.core.redact.redactor import Redactor
from tests.core.redact.test_redact import ID_TOKEN, OWN, PLANTED, SK, UUID, in_json, unfolded

FRAGMENTS = [
    *("token", "refresh_token", "accessToken", "api_key", "OPENAI_API_KEY", "password", "cookie", "set-cookie", "authorization"),
    *("account_id", "user_id", "MY_SECRET", "x-api-key", "Bearer ", "Basic ", "sk-", SK, ID_TOKEN, "eyJ", "ghp_", "AKIA"),
    *(
        "/home/",
        "/Users/",
        "C:\\Users\\",
        "/root",
        "ann",
        "bob",
        "@",
        "corp.com",
        "ann@corp.com",
        "%40",
        "%3D",
        "%2Fhome%2F",
        "://",
    ),
    *(
        '"',
        "'",
        "\\",
        '\\"',
        '\\\\"',
        '\\\\\\"',
        "\\n",
        "\\u0040",
        "\\u0022",
        "\\\\u0022",
        "\\u005c",
        "\\/",
        "\\u00e9",
        "é",
        "\n",
        "\r\n",
        " ",
    ),
    *(
        ":",
        "=",
        ",",
        ";",
        "&",
        "?",
        ".",
        "-",
        "_",
        "--",
        "[",
        "]",
        "{",
        "}",
        '":"',
        '","',
        '=\\"',
        '":["',
        UUID,
        "1",
        "x9",
        "abc12345678",
    ),
    *(
        "redacted-",
        "redacted-token-1",
        "sk-redacted-2",
        "user-1@redacted.example",
        "0edac7ed-0000-4000-8000-000000000001",
        "user",
    ),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "-----END",
        "[31m",
        "\x1b",
        "\\u001b[31m",
        "/tmp/case-17/home",
        "/tmp/case-17",
        'we"ird\\lit é',
    ),
]
soups = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=3)), max_size=14).map("".join)


@settings(max_examples=600, deadline=None)
@given(soups)
@example("'password': 'a\\\"b'")
@example('"api_key":"\\u0022 \\u0022"')
@example("-----BEGIN PRIVATE KEY-----0edac7ed-0000-4000-8000-000000000001")
def test_redacting_twice_is_redacting_once(soup: str) -> None:
    redactor = Redactor(**OWN)
    once = redactor.redact(soup.encode("utf-8", "surrogatepass"))
    assert redactor.redact(once) == once
    assert Redactor(**OWN).redact(once) == once
    assert redactor.findings(once) == []


def test_a_lone_surrogate_hides_no_secret_and_ends_nothing() -> None:
    redactor = Redactor(**OWN)
    assert redactor.text("\ud800 and Authorization: Bearer Zk3rT9vQp2LmX8sWn4Yb").startswith("\\ud800 and Authorization: Bearer ")
    assert "Zk3rT9vQp2LmX8sWn4Yb" not in redactor.text("\ud800 and Authorization: Bearer Zk3rT9vQp2LmX8sWn4Yb")
    assert redactor.text("\udcff stays") == "\udcff stays"
    assert redactor.argv(["--api-key", "\ud800Zk3rT9vQp2LmX8sWn4Yb"]) != ["--api-key", "\ud800Zk3rT9vQp2LmX8sWn4Yb"]


keys = st.one_of(
    st.sampled_from([fragment for fragment in FRAGMENTS if fragment.isascii() and "redacted" not in fragment]),
    st.text(max_size=4),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), soups, st.text(max_size=5)),
    lambda below: st.one_of(
        st.lists(below, max_size=3), st.dictionaries(keys, below, max_size=3), below.map(lambda v: json.dumps(v))
    ),
    max_leaves=6,
)


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [shape(below) for below in value.values()]
    if isinstance(value, list):
        return ["list", *(shape(below) for below in value)]
    return "string" if isinstance(value, str) else value


@settings(max_examples=400, deadline=None)
@given(values, st.booleans(), st.sampled_from([None, 1]))
def test_json_stays_json_of_the_same_shape(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    if b"/home/user" in text or b"/Users/user" in text:
        return  # a name that is there already may become a second key of one name
    assert shape(json.loads(Redactor().redact(text))) == shape(value)


@settings(max_examples=300, deadline=None)
@given(values)
def test_a_decoded_value_is_redacted_as_its_bytes_are(value: Any) -> None:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return
    assert Redactor().value(value) == json.loads(Redactor().redact(text))


secrets = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=12, max_size=30).map(
    lambda text: f"Q7{text}"
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PLANTED), secrets, st.integers(0, 5), st.booleans(), st.binary(max_size=40), st.binary(max_size=40))
def test_a_planted_secret_never_survives_and_its_surroundings_do(
    planted: tuple[str, str, list[str]], fresh: str, depth: int, ascii_only: bool, before: bytes, after: bytes
) -> None:
    kind, secret, carriers = planted
    if kind in (
        "token",
        "account",
        "password",
        "env",
        "cookie",
        "bearer",
        "url-password",
        "private-key",
        "home",
    ) and secret not in ("/root", UUID):
        secret = fresh
    before, after = before.replace(b"\n", b"") + b"\n", b"\n" + after.replace(b"\n", b"")
    if Redactor().findings(before) or Redactor().findings(after):
        return
    for carrier in carriers:
        planted_bytes = in_json(carrier.format(secret), depth, ascii_only)
        redacted = Redactor(**OWN).redact(before + planted_bytes + after)
        assert redacted.startswith(before)
        assert redacted.endswith(after)
        middle = redacted[len(before) : len(redacted) - len(after)]
        assert not any(secret in found for found in unfolded(middle))


@st.composite
def oddly_written(draw: st.DrawFn, value: Any) -> str:
    """A JSON text of a value with needless escapes and spaces."""

    def string(text: str) -> str:
        out = []
        for char in text:
            plain = json.dumps(char)[1:-1]
            if char.isascii() and draw(st.integers(0, 5)) == 0:
                plain = f"\\u{ord(char):04x}" if char != "/" else "\\/"
            out.append(plain)
        return '"' + "".join(out) + '"'

    if isinstance(value, dict):
        items = [f"{string(key)} : {draw(oddly_written(below))}" for key, below in value.items()]
        return "{ " + " ,".join(items) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(draw(oddly_written(below)) for below in value) + " ]"
    return string(value) if isinstance(value, str) else json.dumps(value)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(PLANTED), st.booleans())
def test_needless_escapes_hide_nothing(data: st.DataObject, planted: tuple[str, str, list[str]], nested: bool) -> None:
    _, secret, carriers = planted
    text = data.draw(st.sampled_from(carriers)).format(secret)
    try:
        value: Any = json.loads(text)
    except ValueError:
        value = [text]
    written = data.draw(oddly_written(json.dumps(value) if nested else value))
    redacted = Redactor(**OWN).redact(written.encode())
    assert not any(secret in found for found in unfolded(redacted))
    assert shape(json.loads(redacted)) == shape(json.loads(written))
