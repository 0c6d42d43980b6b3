"""Headers, command lines, environments and findings; a caller's own paths and names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from codex_replay.core.redact.redactor import Redactor
from tests.core.redact.test_redact import OTHER_UUID, UUID


def test_headers() -> None:
    redactor = Redactor()
    headers = [
        ("Authorization", "Bearer abc"),
        ("Cookie", "sid=abc; theme=dark"),
        ("Set-Cookie", "sid=abc; Path=/; HttpOnly"),
        ("Proxy-Authorization", "Basic eHl6"),
        ("x-api-key", "k"),
        ("api-key", "k2"),
        ("chatgpt-account-id", UUID),
        ("OpenAI-Organization", "org-77"),
        ("openai-project", "proj_88"),
        ("session_id", OTHER_UUID),
        ("referer", "https://h/?access_token=abc"),
        ("user-agent", "codex/0.92.0 (Linux; x86_64)"),
        ("x-odd", "caf\udce9 /home/ann"),
    ]
    assert redactor.headers(headers) == [
        ("Authorization", "Bearer redacted-bearer-1"),
        ("Cookie", "sid=redacted-bearer-1; theme=redacted-cookie-1"),  # one secret, one placeholder, wherever it stands
        ("Set-Cookie", "sid=redacted-bearer-1; Path=/; HttpOnly"),
        ("Proxy-Authorization", "Basic redacted-bearer-2"),
        ("x-api-key", "redacted-key-1"),
        ("api-key", "redacted-key-2"),
        ("chatgpt-account-id", "0edac7ed-0000-4000-8000-000000000001"),
        ("OpenAI-Organization", "org-redacted-1"),
        ("openai-project", "proj_redacted-1"),
        ("session_id", OTHER_UUID),
        ("referer", "https://h/?access_token=redacted-bearer-1"),
        ("user-agent", "codex/0.92.0 (Linux; x86_64)"),
        ("x-odd", "caf\udce9 /home/user"),
    ]


def test_argv() -> None:
    argv = [
        "codex",
        "app-server",
        "--api-key",
        "X",
        "--token=Y",
        "-c",
        'p.mock.api_key="a b"',
        "-c",
        'model="gpt-5"',
        "--listen",
        "stdio://",
    ]
    assert Redactor().argv(argv) == [
        *(
            "codex",
            "app-server",
            "--api-key",
            "redacted-key-1",
            "--token=redacted-token-1",
            "-c",
            'p.mock.api_key="redacted-key-2"',
        ),
        *("-c", 'model="gpt-5"', "--listen", "stdio://"),
    ]
    argv = [
        "env",
        "PASSWORD=a b,c",
        "curl",
        "-H",
        "X-Api-Key: plain",
        "-H",
        "Accept: */*",
        "--cacert",
        "/home/ann/ca",
        "--api-key",
        "--v",
    ]
    assert Redactor().argv(argv) == [
        *("env", "PASSWORD=redacted-secret-1", "curl", "-H", "X-Api-Key: redacted-key-1", "-H", "Accept: */*"),
        *("--cacert", "/home/user/ca", "--api-key", "--v"),
    ]


def test_environ() -> None:
    environ = {
        "OPENAI_API_KEY": "a",
        "GH_TOKEN": "b",
        "X_SECRET_2": "c",
        "HOME": "/root",
        "USER": "ann",
        "TERM": "xterm",
        "EMPTY_KEY": "",
    }
    assert Redactor().environ(environ) == {
        "OPENAI_API_KEY": "redacted-key-1",
        "GH_TOKEN": "redacted-secret-1",
        "X_SECRET_2": "redacted-secret-2",
        "HOME": "/home/user",
        "USER": "user",
        "TERM": "xterm",
        "EMPTY_KEY": "",
    }


def test_values_without_a_form_in_utf8() -> None:
    assert Redactor().value({"password": "x", "lone": "\ud800"}) == {"password": "redacted-password-1", "lone": "\ud800"}
    with pytest.raises(ValueError, match="JSON"):
        Redactor().value({"x": float("nan")})


def test_findings_say_where() -> None:
    data = b'{"a":"ann@corp.com","password":"x"}'
    assert [(kind, data[start:end]) for kind, start, end in Redactor().findings(data)] == [
        ("email", b"ann@corp.com"),
        ("password", b"x"),
    ]


# --- the caller's own -----------------------------------------------------------------------------------------------------------


def test_own_paths_match_whole_segments_the_longest_first() -> None:
    redactor = Redactor(paths={"/tmp/case": "/case", "/tmp/case/home": "/home/user", "C:\\case": "/case", "/srv/é x": "/srv/e"})

    def check(before: str, after: str) -> None:
        assert redactor.redact(before.encode()).decode() == after
        assert json.loads(redactor.redact(json.dumps(json.dumps(before)).encode())) == json.dumps(after)

    check("/tmp/case/home/.codex /tmp/case/x", "/home/user/.codex /case/x")
    check("/tmp/cases /tmp/case-1 /tmp/case.bak /x/tmp/case", "/tmp/cases /tmp/case-1 /tmp/case.bak /x/tmp/case")
    check("in /tmp/case.", "in /case.")
    check("projects./tmp/case/x.trust_level", "projects./case/x.trust_level")
    check("diff --git a//tmp/case/x b//tmp/case/x", "diff --git a//case/x b//case/x")
    check("/private/tmp/case/home", "/home/user")
    check("C:\\case\\x", "/case\\x")
    check("%2Ftmp%2Fcase%2Fx", "/case%2Fx")
    check("/srv/é x/y", "/srv/e/y")


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"literals": {"": "x"}}, "is empty"),
        ({"paths": {"/": "x"}}, "is empty"),
        ({"literals": {"x": 'a"b'}}, "printable ASCII"),
        ({"literals": {"x": "ann@corp.com"}}, "itself looks like a secret"),
        ({"literals": {"nancy": "a nancy"}}, "itself looks like a secret"),
        ({"paths": {"/tmp/a": "/root/a"}}, "itself looks like a secret"),
    ],
)
def test_an_entry_that_could_not_hold_is_refused(own: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Redactor(**own)
