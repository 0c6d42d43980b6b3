"""Refresh the tokens of a ChatGPT login at the token URL (LITE-10 to LITE-23).

The error messages are those of the real Codex (REAL-17 to REAL-20).
"""

from __future__ import annotations

from codex_replay.reference.json_text import dumps, loads
from codex_replay.reference.lite_client import transport
from codex_replay.reference.lite_client.errors import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLIENT_ID = "app_EMoamEEZ73f0CkXaXp7hrann"
SCOPE = "openid profile email"
#: code of a refused refresh -> why, unchanged in the sentence.
REASONS = {
    "refresh_token_expired": " because your refresh token has expired",
    "refresh_token_reused": " because your refresh token was already used",
    "refresh_token_invalidated": " because your refresh token was revoked",
}


def request_body(refresh_token: str) -> bytes:
    """Return the body of the refresh request."""
    fields = {"client_id": CLIENT_ID, "grant_type": "refresh_token", "refresh_token": refresh_token, "scope": SCOPE}
    return dumps(fields).encode()


def request_headers() -> dict[str, str]:
    """Return the headers of the refresh request."""
    return {"Content-Type": "application/json", "Accept": "application/json"}


def refresh(url: str, refresh_token: str, timeout: float) -> dict[str, Any]:
    """Exchange a refresh token for new tokens. If the exchange fails, raise a `Problem` that asks the user to log in again."""
    try:
        answer = transport.post(url, request_headers(), request_body(refresh_token), timeout)
        try:
            body = answer.read()
        finally:
            answer.close()
    except Problem as problem:
        raise Problem(f"Failed to refresh token: {problem} {log_in()}") from problem
    fields = _object(body)
    if answer.status != 200:
        raise Problem(f"{complaint(answer.status, answer.reason, body)} {log_in()}")
    if not isinstance(fields.get("access_token"), str):
        raise Problem(f"Failed to refresh token: the answer has no access_token. {log_in()}")
    return fields


def log_in() -> str:
    """Return the sentence that asks the user to log in again."""
    return "To make a new auth.json, log in again (codex login)."


def complaint(status: int, reason: str, body: bytes) -> str:
    """Return the reason why the server refused a token refresh."""
    if status == 401:
        why = REASONS.get(code_of(_object(body)), "")
        return f"Your access token could not be refreshed{why}. Please log out and sign in again."
    return f"Failed to refresh token: {status} {reason}: {body.decode('utf-8', 'replace')[:500]}"


def code_of(fields: dict[str, Any]) -> str:
    """Return the code of an error: the value of `error.code`, of `error` (a string), or of `code`."""
    error = fields.get("error")
    found = error.get("code") if isinstance(error, dict) else error
    return str(found or fields.get("code") or "")


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
