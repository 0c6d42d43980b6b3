"""The redactor against an oracle that knows what it planted: no secret survives, nothing else changes, a blind one is caught."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import tracemalloc
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codex_replay.core.redact import rules
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.redact.text import Shadow, Span, string_end

UUID = "7d4f1c2e-9a3b-4c5d-8e6f-0a1b2c3d4e5f"
OTHER_UUID = "01997a6e-1f2b-7c3d-9e4f-5a6b7c8d9e0f"


def b64(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def jwt(**claims: object) -> str:
    return f"{b64({'alg': 'RS256', 'typ': 'JWT', 'kid': 'Kid77'})}.{b64(claims)}.c2lnbmF0dXJlLW9mLWpvZQ"


AUTH_CLAIMS = {"chatgpt_plan_type": "pro", "chatgpt_account_id": UUID, "chatgpt_user_id": "user-Qx81vB", "user_id": "user-Qx81vB"}
ID_TOKEN = jwt(
    email="ann.lee@corp.test",
    exp=1750000000,
    iat=1740000000,
    sub="auth0|Zz81",
    **{"https://api.openai.com/auth": AUTH_CLAIMS},
)
SK = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nBAQEFAASCBKcw\n-----END PRIVATE KEY-----\n"

# What is planted: the kind, the secret that must not be seen again, and the texts it stands in.
PLANTED: list[tuple[str, str, list[str]]] = [
    (
        "bearer",
        "opaque-Tok3n_x/y+z=",
        ["Authorization: Bearer {}", "curl -H 'authorization: bearer {}' http://h", "got Bearer {}, sorry"],
    ),
    ("bearer", "dXNlcjpwYXNz", ["Proxy-Authorization: Basic {}\r\nAccept: */*", '{{"authorization":"Basic {}"}}']),
    ("bearer", "short", ['{{"headers":[["accept","*/*"],["authorization","Bearer {}"]]}}', '{{"Authorization":["Bearer {}"]}}']),
    (
        "bearer",
        "tok",
        ['{{"name":"Authorization","value":"Bearer {}"}}', '{{"rawHeaders":["Authorization","Bearer {}","Host","h"]}}'],
    ),
    ("api-key", SK, ["{}", "key={}", "a\n{}\nb", '{{"text":"the key {} is wrong"}}', "\x1b[32m{}\x1b[0m"]),
    ("api-key", "sk-Ab3dEf6hIj9kLm2nOp5q", ["{}", "Incorrect API key provided: {}. You can find"]),
    ("api-key", "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8", ["{}", "https://x-access-token:{}@github.com/o/r"]),
    ("api-key", "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuV", ["token {}"]),
    ("api-key", "AKIAIOSFODNN7EXAMPLE", ["id {}"]),
    ("api-key", "k1y2k3y4", ["x --api-key {} y", "x --api-key '{}' y", 'x --api-key "{}" y']),
    ("api-key", "xoxb-123456789012-abcdefABCDEF", ["slack {}"]),
    ("api-key", "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q", ["maps {}"]),
    (
        "api-key",
        "plain",
        ['{{"apiKey":"{}"}}', '{{"x-api-key":"{}"}}', '{{"api_key":"{}"}}', '["--api-key","{}"]', "?api_key={}&v=1"],
    ),
    ("api-key", "k1y", ['{{"OPENAI_API_KEY":"{}"}}', "OPENAI_API_KEY={} codex", '["OPENAI_API_KEY={}"]', "-c a.b.api_key='{}'"]),
    ("jwt", ID_TOKEN, ["{}", "see {} now", '{{"x":"{}"}}', "https://h/cb#t={}"]),
    ("jwt", ID_TOKEN.rsplit(".", 1)[0], ["cut off {} here"]),
    (
        "token",
        "rt_9x.y-z",
        ['{{"refresh_token":"{}"}}', '{{"refreshToken" : "{}"}}', "refresh_token={}", "a=1&refresh_token={}&b=2"],
    ),
    ("token", "at", ['{{"tokens":{{"access_token":"{}","account_id":null}}}}', '{{"authToken":"{}"}}', "{{'id_token': '{}'}}"]),
    ("token", "b7", ['{{"command":"codex -c p.experimental_bearer_token=\\"{}\\""}}', "http://h/x%3Faccess_token%3D{}%26y"]),
    ("token", "q8w7e6r5t4y3u2i1", ['{{"token":"{}"}}', "login --token {} --now"]),
    (
        "account",
        UUID,
        ['{{"account_id":"{}"}}', '{{"chatgptAccountId":"{}"}}', "chatgpt-account-id: {}", '[["chatgpt-account-id","{}"]]'],
    ),
    ("account", "user-Qx81vB", ['{{"chatgpt_user_id":"{}"}}', '{{"userId":"{}"}}', '{{"user_id":"{}"}}']),
    ("account", "org-Zy1", ['{{"organization_id":"{}"}}', '{{"openai-organization":"{}"}}', '{{"OpenAI-Project":"{}"}}']),
    ("password", "hunter two", ['{{"password":"{}"}}', '{{"client_secret":"{}"}}', 'password = "{}"']),
    (
        "env",
        "v4lue",
        ['{{"env":{{"MY_SECRET":"{}"}}}}', "DB_PASSWORD={}", '{{"name":"GITHUB_CREDENTIALS","value":"{}"}}', "a SIGN_KEY={};x"],
    ),
    ("cookie", "abc.def", ["Cookie: sid={}; theme=", '{{"set-cookie":["sid={}; Path=/; HttpOnly"]}}', '{{"cookie":"a=; b={}"}}']),
    ("cookie", "q1", ["set-cookie: x=; Expires=Wed, 21 Oct 2026 07:28:00 GMT, y={}; Path=/", '[["cookie","{}"]]']),
    ("email", "ann.lee+x@corp.example.com", ["{}", "mail\n{}\tnow", '{{"email":"{}"}}', "<{}>", "\x1b[1;31m{}", "?u={}"]),
    ("email", "ann%40corp.com", ["login_hint={}&x=1"]),
    (
        "home",
        "annlee",
        ["/home/{}/x", "file:///Users/{}", "C:\\Users\\{}\\x", "-I/home/{}/include", "/mnt/c/Users/{}", "cd /home/{}."],
    ),
    (
        "home",
        "annlee",
        ["%2Fhome%2F{}%2Fx", "C:/Users/{}/x", '{{"cwd":"/home/{}"}}', '{{"cwd":"C:\\\\Users\\\\{}"}}', "PATH=/bin:/home/{}/bin"],
    ),
    ("home", "/root", ["{}", "cd {}/x", "a:{}/bin", '{{"cwd":"{}"}}']),
    ("home", "Ann Lee", ["C:\\Users\\{}\\x"]),
    ("private-key", "MIIEvQIBADANBgkqhkiG9w0", [PEM.replace("MIIEvQIBADANBgkqhkiG9w0", "{}")]),
    ("url-password", "pa55", ["postgres://ann:{}@db/x", "http://ann:{}@h.com:8080/"]),
    ("literal", 'we"ird\\lit é', ['{{"x":1}} {}', "{}"]),
    ("path", "/tmp/case-17/home", ["{}", "{}/.codex", "cd {}, go", "x={}:/bin"]),
]
KINDS = sorted({kind for kind, _, _ in PLANTED})
OWN: dict[str, Any] = {
    "literals": {'we"ird\\lit é': "a-literal", "nancy": "a-name"},
    "paths": {"/tmp/case-17/home": "/home/user", "/tmp/case-17": "/case"},
}


def in_json(text: str, depth: int, ascii_only: bool) -> bytes:
    """The text itself (depth 0), as a JSON string, as one in a JSON text in a JSON string, ..."""
    for level in range(depth):
        text = json.dumps(text if level == 0 else {"method": "x", "params": [text, None, 7]}, ensure_ascii=ascii_only)
    return text.encode()


def unfolded(data: bytes) -> Iterator[str]:
    """The text, and every string and key that decoding it, again and again, brings to light."""

    def walk(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, below in value.items():
                yield from (key, *walk(below))
        elif isinstance(value, list):
            for below in value:
                yield from walk(below)
        elif isinstance(value, str):
            yield value
            with contextlib.suppress(ValueError):
                yield from walk(json.loads(value))

    yield from walk(data.decode("utf-8", "replace"))


def survivors(redactor: Redactor) -> list[tuple[str, str, str]]:
    """The oracle: which planted secrets can still be read after redaction, at any nesting; it asks the redactor nothing."""
    alive = []
    for kind, secret, carriers in PLANTED:
        for carrier in carriers:
            text = carrier.format(secret)
            for depth in range(4):
                for ascii_only in (True, False):
                    seen = redactor.redact(in_json(text, depth, ascii_only))
                    if any(secret in found for found in unfolded(seen)):
                        alive.append((kind, text, seen.decode("utf-8", "replace")))
    return alive


class Blind(Redactor):
    """A redactor that overlooks one kind."""

    kind = ""

    def _find(self, data: bytes) -> list[Span]:
        return [span for span in super()._find(data) if span.kind != self.kind]


def test_no_planted_secret_survives() -> None:
    assert survivors(Redactor(**OWN)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_redactor_that_overlooks_a_kind_is_caught(kind: str) -> None:
    blind = Blind(**OWN)
    blind.kind = kind
    assert kind in {found for found, _, _ in survivors(blind)}


def test_the_table_of_planted_secrets_has_every_kind_that_the_finders_know() -> None:
    redactor = Redactor(**OWN)
    found = {
        kind
        for _, secret, carriers in PLANTED
        for carrier in carriers
        for kind, _, _ in redactor.findings(carrier.format(secret).encode())
    }
    assert found == set(KINDS)


@pytest.mark.parametrize(("kind", "secret", "carriers"), PLANTED)
def test_only_the_secret_is_replaced(kind: str, secret: str, carriers: list[str]) -> None:
    if kind == "private-key":  # planted is one line of it; replaced is all between the markers
        carriers, secret = ["-----BEGIN PRIVATE KEY-----{}-----END PRIVATE KEY-----"], "\\nMIIEvQIBADANBg\\n"
    for carrier in carriers:
        for depth in range(4):
            data = in_json(carrier.format(secret), depth, False)
            needle = in_json(secret, min(depth, 1), False).strip(b'"') if depth < 2 else secret.encode()
            redacted = Redactor(**OWN).redact(data)
            if needle in data:
                before, after = data.split(needle, 1)
                assert redacted.startswith(before)
                assert redacted.endswith(after.split(needle)[-1])


HARMLESS = [
    f'{{"method":"turn/start","id":3,"params":{{"threadId":"{OTHER_UUID}","input":[{{"type":"text","text":"hi"}}]}}}}',
    f'{{"conversationId":"{OTHER_UUID}","session_id":"{OTHER_UUID}","prompt_cache_key":"{OTHER_UUID}","call_id":"call_Ab12cd34Ef56"}}',
    f'[["session_id","{OTHER_UUID}"],["accept","text/event-stream"],["originator","codex_vscode"],["x-codex-turn-state","ts-1"]]',
    '{"client_id":"app_EMoamEEZ73f0CkXaXp7hrann","grant_type":"refresh_token","scope":"openid profile email"}',
    "client_id=app_EMoamEEZ73f0CkXaXp7hrann&grant_type=refresh_token&scope=openid+profile+email",
    '{"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":2,"total_tokens":12}}',
    '{"tokenUsage":{"total":{"totalTokens":12,"inputTokens":10},"last":null,"modelContextWindow":272000},"token":17}',
    '{"model_auto_compact_token_limit":200000,"max_output_tokens":null,"tool_output_token_limit":"10000","MAX_TOKENS":"4096"}',
    '{"method":"codex/event/token_count","params":{"id":"0","msg":{"type":"token_count","info":null,"rate_limits":null}}}',
    '{"OPENAI_API_KEY":null,"access_token":null,"refreshToken":true,"account_id":5,"password":"","tokens":{}}',
    '{"properties":{"refresh_token":{"type":"string"},"user_id":{"type":["string","null"]}},"required":["access_token","expires_in"]}',
    '{"required":["authorization","cookie","password"],"enum":["api_key","chatgpt"],"default":"password"}',
    '{"error":{"code":"refresh_token_expired","message":"Your access token could not be refreshed because it has expired."}}',
    '{"type":"reasoning","encrypted_content":"gAAAAABoq-_sk-aB3dEf6hIj9kLm2nOp5qRs_8tUv1wXy4z=="}',
    '{"logprobs":[{"token":"Hello","logprob":-0.31,"bytes":[72]},{"token":" key","logprob":-1.5}]}',
    '{"method":"account/login/start","params":{"type":"apiKey"}} {"method":"account/rateLimits/read","id":1}',
    '{"env_key":"OPENAI_API_KEY","bearer_token_env_var":"GITHUB_TOKEN","cli_auth_credentials_store":"file","requires_openai_auth":true}',
    '{"authorization":"Bearer ${OPENAI_API_KEY}","password":"<password>","api_key":"...","GITHUB_TOKEN":"$GITHUB_TOKEN"}',
    "The Bearer token is missing. Bearer authentication is required; user_id: string, password: String, api_key: str = None",
    'WWW-Authenticate: Bearer realm="x", error="invalid_token"',
    "def f(api_key=api_key, password=getpass(), *, token: str) -> None: self.access_token = resp.access_token",
    "use git@github.com:openai/codex.git, @openai/codex@0.92.0, user@1000.service, @pytest.mark.x, a @ b.cd",
    "a task-1234567890123456789012345, sk-learn-contrib, /usr/share/home/x, src/Users/List.tsx, #/root, ~/root, </root>",
    "/home/$USER/x /home/<you>/x /home/linuxbrew/.linuxbrew/bin /Users/Shared https://example.com/home/index.html /home/ /rooted",
    "data: {}\r\n\r\nevent: response.created\r\n: comment\r\n\r\n",
    "eyJhbGciOiJub25lIn0 is a header alone; eyJ.x.y is nothing",
    "AKIA and xoxo-kisses and hf_model and https://h:8080/x@y",
    "--token-limit 5 --password-file x --key value -----BEGIN CERTIFICATE-----",
    # Placeholders of an earlier redaction.
    '{"access_token":"redacted-token-3","account_id":"0edac7ed-0000-4000-8000-000000000004","password":"redacted-password-1"}',
    "Authorization: Bearer sk-redacted-1\r\nCookie: a=redacted-cookie-1; Path=/\r\nuser-1@redacted.example /home/user-2",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_things_are_left_alone(text: str) -> None:
    for depth in range(3):
        data = in_json(text, depth, False)
        assert Redactor().redact(data) is data
        assert Redactor().findings(data) == []


@given(st.binary(max_size=200))
def test_noise_without_a_secret_is_left_alone(noise: bytes) -> None:
    noise = noise.replace(b"@", b"").replace(b"=", b"")
    assert Redactor().redact(noise) == noise


# --- placeholders ---------------------------------------------------------------------------------------------------------------


def test_placeholders_keep_the_shape_and_the_identity_of_a_secret() -> None:
    redactor = Redactor()
    out = json.loads(
        redactor.redact(
            json.dumps(
                {
                    "account_id": UUID,
                    "again": {"chatgptAccountId": UUID, "user_id": "user-Qx81vB", "org_id": "org-1"},
                    "access_token": "opaque-1",
                    "header": "Bearer opaque-1",
                    "id_token": "opaque-2",
                    "text": f"{SK} and ann@corp.com and bob@corp.com",
                    "nested": json.dumps({"email": "ann@corp.com", "api_key": SK, "password": 'p"q'}),
                    "password": 'p"q',
                }
            ).encode()
        )
    )
    nested = json.loads(out["nested"])
    assert out["account_id"] == out["again"]["chatgptAccountId"] == "0edac7ed-0000-4000-8000-000000000001"
    assert (out["again"]["user_id"], out["again"]["org_id"]) == ("user-redacted-1", "org-redacted-1")
    assert out["header"] == f"Bearer {out['access_token']}"
    assert out["access_token"] != out["id_token"]
    assert out["text"] == "sk-redacted-1 and user-1@redacted.example and user-2@redacted.example"
    assert nested == {"email": "user-1@redacted.example", "api_key": "sk-redacted-1", "password": out["password"]}


def test_a_jwt_becomes_one_that_parses() -> None:
    redactor = Redactor()
    text = redactor.redact(json.dumps({"id_token": ID_TOKEN, "access_token": ID_TOKEN + "x", "account_id": UUID}).encode())
    out = json.loads(text)
    head, payload, signature = out["id_token"].split(".")

    def decoded(part: str) -> Any:
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))

    claims = decoded(payload)
    assert decoded(head)["alg"] == "RS256"
    assert list(claims) == ["email", "exp", "iat", "sub", "https://api.openai.com/auth"]
    assert (claims["exp"], claims["iat"]) == (1750000000, 1740000000)
    assert claims["email"] == "user-1@redacted.example"
    auth = claims["https://api.openai.com/auth"]
    assert list(auth) == list(AUTH_CLAIMS)
    assert auth["chatgpt_plan_type"] == "pro"
    assert auth["chatgpt_account_id"] == out["account_id"]
    assert auth["user_id"] == auth["chatgpt_user_id"] == "user-redacted-1"
    assert base64.urlsafe_b64decode(signature + "==") == b"redacted-1"
    assert out["id_token"] != out["access_token"]
    everything = text + base64.urlsafe_b64decode(head + "==") + base64.urlsafe_b64decode(payload + "==")
    for secret in ("ann.lee", "corp.test", UUID, "Qx81vB", "Zz81", "Kid77"):
        assert secret.encode() not in everything


def test_numbers_taken_by_an_earlier_redaction_are_not_given_again() -> None:
    first = Redactor().redact(
        f'{{"refresh_token":"one","account_id":"{UUID}","id_token":"{ID_TOKEN}","m":"a@b.cd {SK}"}}'.encode()
    )
    second = json.loads(first)
    more = {
        "refresh_token": "two",
        "account_id": OTHER_UUID,
        "id_token": ID_TOKEN + "x",
        "m": "c@d.ef sk-" + SK[::-1].replace("-", ""),
    }
    merged = json.loads(Redactor().redact(json.dumps([second, more]).encode()))
    assert merged[0] == second
    assert all(merged[0][key] != merged[1][key] for key in second)


def test_home_directories_of_two_people_stay_apart() -> None:
    redactor = Redactor()
    assert redactor.redact(b"/home/ann/x /home/bob /Users/ann /root") == b"/home/user/x /home/user-2 /Users/user /home/user-3"


# --- properties -----------------------------------------------------------------------------------------------------------------

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


# --- the other doors ------------------------------------------------------------------------------------------------------------


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


# --- parts ----------------------------------------------------------------------------------------------------------------------


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
