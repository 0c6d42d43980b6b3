"""Every value that this suite compares exactly, as rows of a table in docs/lite-client.md.

The cases import these values, and `tests/project/test_exact_values.py` compares docs/lite-client.md with `ROWS`.
Source: docs/contract/lite.md; a comment names any other source of a value.
"""

from __future__ import annotations

import json

from suites.lite_protocol import FIXED

#: The path of a request to the model, after the base URL.
METHOD, ENDPOINT = "POST", "/responses"
#: A User-Agent begins with this name or with the client's own originator.
PRODUCT = "codex_cli_rs"
#: The type that the real Codex accepts (REAL-24); a client may list other types too.
ACCEPT = "text/event-stream"
DEFAULT_MODEL = "gpt-5.2-codex"
VERBOSITY = "medium"
#: The only fields of a request.
FIELDS = ("model", "instructions", "input", "tools", *FIXED, "prompt_cache_key", "text")
#: The start of the output of a failed call.
ERROR = "err: "
#: The type of every body that the client sends (REAL-24, LITE-12).
BODY_TYPE = "application/json"
#: The body of a refresh, except for the refresh token.
REFRESH_BODY = {
    "client_id": "app_EMoamEEZ73f0CkXaXp7hrann",
    "grant_type": "refresh_token",
    "scope": "openid profile email",
}
#: The code of a refused refresh (REAL-16) -> the part of the message that the specification fixes.
REASONS = {
    "refresh_token_expired": (
        "Your access token could not be refreshed because your refresh token has expired. Please log out and sign in again."
    ),
    "refresh_token_reused": "refresh token was already used",
    "refresh_token_invalidated": "refresh token was revoked",
}
#: The code of a failed response -> the real Codex's text for it (section 5); the code or the backend's message is valid too.
FAILED = {"context_length_exceeded": "context window", "insufficient_quota": "quota"}
#: The file name that a message about a refresh must contain.
AUTH_FILE = "auth.json"


def code(value: object) -> str:
    """Return a value in the form of a table cell: as code, and as JSON unless the value is a string."""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


#: The name of the value, the required value, and the check that compares it.
ROWS: tuple[tuple[str, str, str], ...] = (
    ("a request to the model", f"`{METHOD} <LITE_BASE_URL>{ENDPOINT}`", "endpoint-chatgpt"),
    ("header `Authorization`, ChatGPT", "`Bearer <tokens.access_token>`", "auth-chatgpt-bearer"),
    ("header `Authorization`, API key", "`Bearer <OPENAI_API_KEY>`", "auth-api-key-bearer"),
    ("header `chatgpt-account-id`, ChatGPT", "the account", "auth-account-from-tokens"),
    ("header `chatgpt-account-id`, API key", "not sent", "auth-account-chatgpt-only"),
    ("header `originator`", f"`{PRODUCT}`, or your own name in visible ASCII", "header-originator"),
    ("header `User-Agent`", f"`{PRODUCT}/` or your originator with `/`, then a version", "header-user-agent"),
    ("header `session_id`", "a uuid, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`", "header-session-id"),
    ("`originator`, `User-Agent`, `session_id`, API key", "as with ChatGPT", "header-under-key"),
    ("header `Accept`", f"{code(ACCEPT)}, alone or with other types", "header-accept"),
    ("header `Content-Type`", code(BODY_TYPE), "header-content-type"),
    ("the only fields of the body", ", ".join(map(code, FIELDS)), "body-known-fields"),
    ("`model`", f"`LITE_MODEL`; default {code(DEFAULT_MODEL)}", "body-model-default"),
    *((code(field), code(value), "body-field") for field, value in FIXED.items()),
    ("`prompt_cache_key`", "the `session_id`", "body-cache-key"),
    ("`text` without a schema; may be absent", code({"verbosity": VERBOSITY}), "body-text-plain"),
    (
        "`text` with a schema; `format` may have a `name`",
        f'`{{"verbosity": "{VERBOSITY}", "format": {{"type": "json_schema", "strict": true, "schema": …}}}}`',
        "body-text-format",
    ),
    ("a call in a follow-up", '`{"type": "function_call", "name": …, "arguments": …, "call_id": …}`', "follow-up-both-items"),
    (
        "the output of the call, after the call",
        '`{"type": "function_call_output", "call_id": …, "output": …}`',
        "follow-up-both-items",
    ),
    ("call and output of a freeform tool", "`custom_tool_call` with `input`, `custom_tool_call_output`", "follow-up-custom"),
    ("reasoning in a follow-up, before the call", '`{"type": "reasoning", "encrypted_content": …}`', "follow-up-reasoning"),
    ("the `output` of a failed call", f"`{ERROR}<error>`", "follow-up-error-text"),
    ("a refresh", f"`{METHOD} <LITE_TOKEN_URL>`", "refresh-url"),
    ("header `Content-Type` of a refresh", code(BODY_TYPE), "refresh-content-type"),
    *((f"the refresh's `{field}`", code(value), "refresh-body") for field, value in REFRESH_BODY.items()),
    ("the refresh's `refresh_token`: the last of four fields", "`tokens.refresh_token`", "refresh-body"),
    *((f"stderr, after a 401 with `{name}`", code(text), "refresh-error-sentence") for name, text in REASONS.items()),
    (
        "stderr, after every failed refresh",
        f"`log in`, `login` or `sign in`, and {code(AUTH_FILE)}",
        "refresh-error-log-in",
    ),
    ("stderr, after any other error of a refresh", "the status, and the body of the response", "refresh-error-server"),
    ("stderr, after an error response to a request", "its status, or its `error.message`", "fault-status"),
    ("stderr, after `response.failed`", "its `code`, or its `message`", "fault-failed"),
    *((f"stderr; for `{name}`, this text is also valid", code(words), "fault-failed") for name, words in FAILED.items()),
)
