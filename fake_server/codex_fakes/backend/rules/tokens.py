"""The tokens of one session: the state of a bearer token, and the result of a refresh.

Each refresh token is valid for one use (refresh tokens rotate), and a second use gets a special error. Tokens do not expire
by a clock; the script decides which tokens have expired. The backend returns the error codes that the real client
distinguishes (REAL-16 to REAL-20).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_replay.core.wire.json_text import dumps

#: state of a refresh token -> (code, message) of the 401 that the token URL answers.
REFRESH_ERRORS = {
    "expired": ("refresh_token_expired", "The refresh token has expired. Log in again."),
    "reused": ("refresh_token_reused", "The refresh token was already used; each works once. Log in again."),
    "revoked": ("refresh_token_invalidated", "The refresh token was revoked. Log in again."),
    "unknown": (
        "refresh_token_unknown",
        "This backend did not issue the refresh token. Send the refresh token that the last refresh returned.",
    ),
}
#: The account of a session that names none.
ACCOUNT = "account-1"
MODES = ("auto", "none", "api_key", "chatgpt")
ACCESS_STATES = ("valid", "expired", "revoked")
#: Key of a script's "auth" object -> what it must be, for the message, and the test of it.
KEYS: dict[str, tuple[str, Any]] = {
    "mode": (f"one of {', '.join(MODES)}", lambda v: v in MODES),
    "api_key": ("a string", lambda v: isinstance(v, str)),
    "access_token": ("a string", lambda v: isinstance(v, str)),
    "refresh_token": ("a string", lambda v: isinstance(v, str)),
    "account_id": ("a string", lambda v: isinstance(v, str)),
    "access": (f"one of {', '.join(ACCESS_STATES)}", lambda v: v in ACCESS_STATES),
    "access_uses": ("a whole number, 1 or more", lambda v: isinstance(v, int) and not isinstance(v, bool) and v > 0),
    "refresh": (
        f"one of valid, {', '.join(REFRESH_ERRORS)}",
        lambda v: v == "valid" or (isinstance(v, str) and v in REFRESH_ERRORS),
    ),
    "refresh_answer": ('an object with "status" and "body"', lambda v: isinstance(v, dict) and isinstance(v.get("status"), int)),
    "rotate": ("true or false", lambda v: isinstance(v, bool)),
    "email": ("a string", lambda v: isinstance(v, str)),
    "plan": ("a string", lambda v: isinstance(v, str)),
    "user_id": ("a string", lambda v: isinstance(v, str)),
}


def auth_error(auth: Mapping[str, Any]) -> str | None:
    """Return a sentence about an error in the key "auth" of a script, or None."""
    for key, value in auth.items():
        if key not in KEYS:
            return f'auth: "{key}" is not a key of auth. The allowed keys are {", ".join(KEYS)}.'
        meaning, test = KEYS[key]
        if not test(value):
            return f"auth.{key} must be {meaning}, not {value!r}."
    return None


class Tokens:
    """The access and refresh tokens that a session has issued, and the state of each.

    If the script sets no tokens, the session accepts every token. If the script sets an access token, or a state for all
    tokens, the session accepts only valid tokens.
    """

    def __init__(self, auth: Mapping[str, Any]) -> None:
        self.mode: str = auth.get("mode", "chatgpt")
        self.api_key: str | None = auth.get("api_key")
        self.account_id: str | None = auth.get("account_id")
        self.rotate: bool = auth.get("rotate", True)
        self.email: str = auth.get("email", "user@example.com")
        self.plan: str = auth.get("plan", "pro")
        #: Codex 0.169.0 compares the user before and after a refresh: another one, or none, is a change of the account, and the
        #: turn ends.
        self.user_id: str = auth.get("user_id", "user-1")
        self.access_uses: int | None = auth.get("access_uses")
        #: What the token URL answers whatever it is asked, as {"status", "body"}; None: it does its work.
        self.refresh_answer: Mapping[str, Any] | None = auth.get("refresh_answer")
        self._issued = 0
        state: str = auth.get("access", "valid")
        self._any_access = "unknown" if "access_token" in auth else state
        self._access = {auth["access_token"]: state} if "access_token" in auth else {}
        state = auth.get("refresh", "valid")
        self._any_refresh = "unknown" if "refresh_token" in auth else state
        self._refresh = {auth["refresh_token"]: state} if "refresh_token" in auth else {}
        self._uses: dict[str, int] = {}

    def check_bearer(self, bearer: str, mode: str, counted: bool = True) -> str | None:
        """Return None if a bearer token is valid, otherwise "expired", "revoked" or "wrong".

        With `counted`, count the use of the token.
        """
        if mode == "api_key":
            return None if self.api_key is None or bearer == self.api_key else "wrong"
        state = self._access.get(bearer, self._any_access)
        if state == "valid" and self.access_uses is not None and counted:
            self._uses[bearer] = self._uses.get(bearer, 0) + 1
            if self._uses[bearer] > self.access_uses:
                return "expired"
        return {"valid": None, "unknown": "wrong"}.get(state, state)

    def use_refresh(self, token: str) -> dict[str, str] | tuple[str, str]:
        """Use a refresh token, which is then no longer valid. Return the new tokens, or the code and message of the refusal."""
        state = self._refresh.get(token, self._any_refresh)
        if state != "valid":
            return REFRESH_ERRORS[state]
        self._issued += 1
        fresh = token
        if self.rotate:
            self._refresh[token] = "reused"
            fresh = f"refresh-token-{self._issued + 1}"
        self._refresh[fresh] = "valid"
        access = f"access-token-{self._issued + 1}"
        self._access = dict.fromkeys(self._access, "expired") | {access: "valid"}
        return {"access_token": access, "refresh_token": fresh, "id_token": self.id_token()}

    def id_token(self) -> str:
        """Return an id token with the claims that Codex reads. The id token is a JWT without a real signature."""
        claims = {
            "email": self.email,
            "https://api.openai.com/auth": {
                "chatgpt_plan_type": self.plan,
                "chatgpt_account_id": self.account_id or ACCOUNT,
                "chatgpt_user_id": self.user_id,
            },
        }
        return ".".join(_base64(part) for part in (b'{"alg":"none","typ":"JWT"}', dumps(claims), b"signature"))


def _base64(data: bytes) -> str:
    import base64  # only for a refresh: it would slow every start

    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
