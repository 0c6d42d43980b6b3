"""Parts of the redactor: names, nested strings, shadows of escapes; and that no line makes it slow."""

from __future__ import annotations

import json
import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.redact import rules
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.redact.text import Shadow, string_end


@pytest.mark.parametrize(
    "name",
    [
        *(
            "refresh_token",
            "refreshToken",
            "REFRESH_TOKEN",
            "chatgpt_account_id",
            "chatgptAccountId",
            "chatgpt-account-id",
            "userId",
        ),
        *(
            "apiKey",
            "openaiApiKey",
            "x-api-key",
            "client_secret",
            "newPassword",
            "Set-Cookie",
            "a.b.api_key",
            "--api-key",
            "MY_KEY",
        ),
        *("DB_PASSWORD_2", "SECRETS", "GOOGLE_CREDENTIALS_FILE", "GH_TOKEN", "TOKEN"),
    ],
)
def test_names_that_tell(name: str) -> None:
    assert rules.kind_of_name(name) is not None
    assert any(word in name.lower() for word in rules.NAME_WORDS)


@pytest.mark.parametrize(
    "name",
    [
        "client_id",
        "input_tokens",
        "totalTokens",
        "token_type",
        "session_id",
        "threadId",
        "prompt_cache_key",
        "PUBLIC_KEY",
        "key",
        "token",
        "env_key",
        "tokens",
    ],
)
def test_names_that_tell_nothing(name: str) -> None:
    assert rules.kind_of_name(name) is None


def test_every_name_of_the_table_has_a_word_that_the_finders_search_for() -> None:
    for table in (rules.NAMES, rules.WEAK_NAMES):
        for name in table:
            for written in (name, name.replace("_", "-"), re.sub("_(.)", lambda found: found[1].upper(), name)):
                assert any(word in written.lower() for word in rules.NAME_WORDS), written


@given(st.text(max_size=8), st.integers(0, 4))
def test_the_end_of_a_nested_string_is_found(content: str, depth: int) -> None:
    text, plain = '"' + json.dumps(content)[1:-1] + '"', json.dumps(content)[1:-1]
    for _ in range(depth):
        text, plain = json.dumps(text)[1:-1], json.dumps(plain)[1:-1]
    unit = 1 << depth
    data = (text + " tail " + text).encode()
    assert string_end(data, unit, unit) == unit + len(plain)


def test_a_shadow_leads_back_to_the_text() -> None:
    data = rb"a\u0040b \/c \\u0022d\u005c"
    shadow = Shadow(data)
    assert shadow.text == rb"a@b /c " + rb"\\\"d\\"
    assert [shadow.raw(shadow.text.index(mark)) for mark in (b"@", b"b", b"/", b"c", b"d")] == [1, 7, 9, 11, 20]


def test_a_shadow_of_many_escapes_is_small() -> None:
    data = rb"\u0041" * 100_000
    tracemalloc.start()
    try:
        Shadow(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * len(data)


def test_a_long_line_is_redacted_and_stays_whole() -> None:
    line = b'{"text":"' + b"lorem ipsum " * 90_000 + b'","refresh_token":"planted-secret"}\n'
    redacted = Redactor().redact(line)
    assert redacted == line.replace(b"planted-secret", b"redacted-token-1")


ADVERSARIAL = [
    *(
        b'"api_key":"',
        b'\\"api_key\\":\\"',
        b"eyJ",
        b"sk-",
        b"\\",
        b'\\"',
        b"@",
        b"a.a@",
        b"--",
        b"token",
        *(b"api_key||", b"password ?? ", b"a:b@tcp(", b"random_password ", b"bundle config a.b c:", b"jwt.encode(a, "),
        b"/home/",
        b"://a:",
        b"bearer ",
    ),
    *(
        b"-----BEGIN PRIVATE KEY-----",
        b"cookie: a=b;",
        b"'password':'",
        b"\\u0022",
        b"key ",
        b"a@a.",
        b"C:\\Users\\",
        b"%40",
        b"-",
        b"  ",
    ),
]


@pytest.mark.parametrize("piece", ADVERSARIAL)
def test_no_line_makes_the_redactor_crawl(piece: bytes) -> None:
    # A quadratic scan of a megabyte would take minutes; the run's own time limit notices that.
    data = piece * (300_000 // len(piece))
    redactor = Redactor()
    once = redactor.redact(data)
    assert redactor.findings(once) == []


@pytest.mark.parametrize("members", [{}, {"z": [1]}, {"z": "abc"}])
@pytest.mark.parametrize(
    "text",
    [
        "the password: ", "password=", "password = ", "Authorization: ", "user: \"ann\"\npassword: ", "[it] password: ",
        '{"password":', '{"password": ', "{'password':", '"password",', '["--api-key",', '"set-cookie": [', '"api_key" => ',
        '{"name":"cookie","value":',
    ],
)  # fmt: skip
def test_the_end_of_a_string_that_ends_in_a_name_is_no_secret(text: str, members: dict[str, object]) -> None:
    """A prompt ends so, and so may each piece of what a model streams: the string is to stay one."""
    for depth in range(3):
        for spaces in (None, 2):
            data = json.dumps({"text": text, **members}, indent=spaces)
            for _ in range(depth):
                data = json.dumps({"inner": data, "after": [1]}, indent=spaces)
            assert Redactor().redact(data.encode()).decode() == data


@pytest.mark.parametrize("depth", range(3))
@pytest.mark.parametrize("begin", ["}", ",", "]"])
@pytest.mark.parametrize(
    "text", ['password = "%s"', '{"password":"%s"}', 'user = "ann"\npassword: "%s"', 'it is\npassword: "%s"\n']
)
def test_a_secret_may_begin_as_the_end_of_an_object_does(text: str, begin: str, depth: int) -> None:
    data, expected = text % f"{begin}x9", text % "redacted-password-1"
    for _ in range(depth):
        data, expected = json.dumps({"text": data}), json.dumps({"text": expected})
    assert Redactor().redact(data.encode()).decode() == expected


@pytest.mark.parametrize(
    "value",
    [
        ["password=\\", "x", "y"],
        ["accountkey=\\\\", ".z"],
        ["define('DB_PASSWORD',", "'x"],
        ['NetworkCredential("ann",', '"x")'],
        ["sshpass", "-p", "", "ssh", 3],
    ],
)
def test_a_name_at_the_end_of_a_string_does_not_reach_into_the_next(value: list[object]) -> None:
    for separators in ((",", ":"), (", ", ": ")):
        data = json.dumps(value, separators=separators).encode()
        assert len(json.loads(Redactor().redact(data))) == len(value)
