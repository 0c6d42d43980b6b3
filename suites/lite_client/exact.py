"""Every value that this suite holds a client to letter by letter, and the table of them that docs/lite-client.md shows.

The cases take the values from here, and `tests/project/test_exact_values.py` holds the page to `ROWS`, so that they cannot drift
apart.
Source: docs/contract/lite.md; what else a value comes from is said next to it.
"""

from __future__ import annotations

import json

from suites.lite_protocol import FIXED

#: A request to the model goes there, behind the base URL.
METHOD, ENDPOINT = "POST", "/responses"
#: What a User-Agent may begin with, if not with the client's own originator.
PRODUCT = "codex_cli_rs"
#: What the real Codex says that it takes (REAL-24); other types may be next to it.
ACCEPT = "text/event-stream"
DEFAULT_MODEL = "gpt-5.2-codex"
VERBOSITY = "medium"
#: The fields that a request has, and no others.
FIELDS = ("model", "instructions", "input", "tools", *FIXED, "prompt_cache_key", "text")
#: What the output of a call that failed begins with.
ERROR = "err: "
REFRESH_TYPE = "application/json"
#: The body of a refresh, except for the refresh token.
REFRESH_BODY = {
    "client_id": "app_EMoamEEZ73f0CkXaXp7hrann",
    "grant_type": "refresh_token",
    "scope": "openid profile email",
}
#: The code of a refused refresh (REAL-16) -> what the message then says, as far as the specification has it.
REASONS = {
    "refresh_token_expired": (
        "Your access token could not be refreshed because your refresh token has expired. Please log out and sign in again."
    ),
    "refresh_token_reused": "refresh token was already used",
    "refresh_token_invalidated": "refresh token was revoked",
}
#: The code of a response that failed -> words of the real Codex for it (section 5), as good as the code or the backend's message.
FAILED = {"context_length_exceeded": "context window", "insufficient_quota": "quota"}
#: The file that a message about a refresh must name.
AUTH_FILE = "auth.json"


def code(value: object) -> str:
    """Return a value as a cell of the table shows it: as code, JSON unless it is a text."""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


#: What it is, what it must be, and the check that holds a client to it.
ROWS: tuple[tuple[str, str, str], ...] = (
    ("a request to the model", f"`{METHOD} <LITE_BASE_URL>{ENDPOINT}`", "endpoint-chatgpt"),
    ("header `Authorization`, ChatGPT", "`Bearer <tokens.access_token>`", "auth-chatgpt-bearer"),
    ("header `Authorization`, API key", "`Bearer <OPENAI_API_KEY>`", "auth-api-key-bearer"),
    ("header `chatgpt-account-id`, ChatGPT", "the account", "auth-account-from-tokens"),
    ("header `chatgpt-account-id`, API key", "not sent", "auth-account-chatgpt-only"),
    ("header `originator`", f"`{PRODUCT}`, or a name of yours in visible ASCII", "header-originator"),
    ("header `User-Agent`", f"begins with `{PRODUCT}/` or your originator and `/`, then digits", "header-user-agent"),
    ("header `session_id`", "a uuid, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`", "header-session-id"),
    ("these three headers, API key", "the same", "header-under-key"),
    ("header `Accept`", f"{code(ACCEPT)}, perhaps among others", "header-accept"),
    ("the body's fields: these and no others", ", ".join(map(code, FIELDS)), "body-known-fields"),
    ("`model`", f"`LITE_MODEL`, without one {code(DEFAULT_MODEL)}", "body-model-default"),
    *((code(field), code(value), "body-field") for field, value in FIXED.items()),
    ("`prompt_cache_key`", "the `session_id`", "body-cache-key"),
    ("`text` without a schema; may be left out", code({"verbosity": VERBOSITY}), "body-text-plain"),
    (
        "`text` with a schema; `format` may have a `name`",
        f'`{{"verbosity": "{VERBOSITY}", "format": {{"type": "json_schema", "strict": true, "schema": …}}}}`',
        "body-text-format",
    ),
    ("a call that goes back", '`{"type": "function_call", "name": …, "arguments": …, "call_id": …}`', "follow-up-both-items"),
    ("its output, behind it", '`{"type": "function_call_output", "call_id": …, "output": …}`', "follow-up-both-items"),
    ("the same of a freeform tool", "`custom_tool_call` with `input`, `custom_tool_call_output`", "follow-up-custom"),
    ("reasoning that goes back, before the call", '`{"type": "reasoning", "encrypted_content": …}`', "follow-up-reasoning"),
    ("the `output` of a call that failed", f"`{ERROR}<error>`", "follow-up-error-text"),
    ("a refresh", f"`{METHOD} <LITE_TOKEN_URL>`", "refresh-url"),
    ("header `Content-Type` of a refresh", code(REFRESH_TYPE), "refresh-content-type"),
    *((f"the refresh's `{field}`", code(value), "refresh-body") for field, value in REFRESH_BODY.items()),
    ("the refresh's `refresh_token`: the last of four fields", "`tokens.refresh_token`", "refresh-body"),
    *((f"stderr, after a 401 with `{name}`", code(text), "refresh-error-sentence") for name, text in REASONS.items()),
    (
        "stderr, however a refresh fails",
        f"`log in`, `login` or `sign in`, and {code(AUTH_FILE)}",
        "refresh-error-log-in",
    ),
    ("stderr, after a refresh that is answered otherwise", "the status, and the answer's text", "refresh-error-server"),
    ("stderr, after a request that is answered with an error", "its status, or its `error.message`", "fault-status"),
    ("stderr, after `response.failed`", "its `code`, or its `message`", "fault-failed"),
    *((f"as good as `{name}` in stderr", code(words), "fault-failed") for name, words in FAILED.items()),
)
