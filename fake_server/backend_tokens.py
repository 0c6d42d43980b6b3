"""The life of the tokens of one session: what a bearer is worth, and what a refresh gives.

Refresh tokens rotate: each is good once, and using it again is an error of its own. Pure: no clock decides, a script says
what has expired. The codes are those that the real client tells apart (real-codex-0.92.md, section 2).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

#: refresh state -> (code, message) of the 401 that the token URL answers.
REFRESH_ERRORS = {
    "expired": ("refresh_token_expired", "Your refresh token has expired. Please log in again."),
    "reused": ("refresh_token_reused", "Your refresh token has already been used. Each one is good for one refresh."),
    "revoked": ("refresh_token_invalidated", "Your refresh token has been revoked. Please log in again."),
    "unknown": (
        "refresh_token_unknown",
        "This refresh token was never issued here: send the one that the last refresh returned.",
    ),
}
MODES = ("auto", "none", "api_key", "chatgpt")
STATES = ("valid", "expired", "revoked")
#: Keys of a script's "auth" object.
KEYS = (
    "mode",
    "api_key",
    "access_token",
    "refresh_token",
    "account_id",
    "access",
    "refresh",
    "access_uses",
    "rotate",
    "email",
    "plan",
)


def auth_error(auth: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a script's "auth", or None."""
    for key in auth:
        if key not in KEYS:
            return f'auth: "{key}" is not a key of auth. Its keys are {", ".join(KEYS)}.'
    if auth.get("mode", "chatgpt") not in MODES:
        return f"auth.mode must be one of {', '.join(MODES)}, not {auth['mode']!r}."
    if auth.get("access", "valid") not in STATES:
        return f"auth.access must be one of {', '.join(STATES)}, not {auth['access']!r}."
    if auth.get("refresh", "valid") not in ("valid", *REFRESH_ERRORS):
        return f"auth.refresh must be one of valid, {', '.join(REFRESH_ERRORS)}, not {auth['refresh']!r}."
    uses = auth.get("access_uses")
    if uses is not None and not (isinstance(uses, int) and uses > 0):
        return f"auth.access_uses must be a whole number from 1, not {uses!r}."
    return None


class Tokens:
    """Which access and refresh tokens a session has issued, and what each is worth now."""

    def __init__(self, auth: Mapping[str, Any]) -> None:
        self.mode: str = auth.get("mode", "chatgpt")
        self.api_key: str | None = auth.get("api_key")
        self.account_id: str | None = auth.get("account_id")
        self.rotate: bool = auth.get("rotate", True)
        self.email: str = auth.get("email", "user@example.com")
        self.plan: str = auth.get("plan", "pro")
        self.access_uses: int | None = auth.get("access_uses")
        self.issued = 0
        #: access token -> "valid", "expired" or "revoked"; empty: any bearer will do.
        self.access: dict[str, str] = {}
        self.refresh: dict[str, str] = {}
        self.uses: dict[str, int] = {}
        if "access_token" in auth:
            self.access[auth["access_token"]] = auth.get("access", "valid")
        if "refresh_token" in auth:
            self.refresh[auth["refresh_token"]] = auth.get("refresh", "valid")
        elif auth.get("refresh", "valid") != "valid":
            self.refresh["*"] = auth["refresh"]
        self.all_access: str = auth.get("access", "valid") if not self.access else "valid"

    def check_bearer(self, bearer: str, mode: str) -> str | None:
        """Judge a bearer: None when it is good, else "expired", "revoked", "wrong"."""
        if mode == "api_key":
            return None if self.api_key is None or bearer == self.api_key else "wrong"
        state = self.access.get(bearer)
        if state is None:
            if self.access and self.all_access == "valid":
                return "wrong"
            state = self.all_access
        if state == "valid" and self.access_uses is not None:
            self.uses[bearer] = self.uses.get(bearer, 0) + 1
            if self.uses[bearer] > self.access_uses:
                return "expired"
        return None if state == "valid" else state

    def use_refresh(self, token: str) -> dict[str, str] | tuple[str, str]:
        """Spend a refresh token: the new tokens, or (code, message) of the refusal."""
        state = self.refresh.get("*") or self.refresh.get(token)
        if state is None:
            if any(key != "*" for key in self.refresh):
                return REFRESH_ERRORS["unknown"]
            state = "valid"
        if state != "valid":
            return REFRESH_ERRORS[state]
        self.issued += 1
        fresh = token
        if self.rotate:
            self.refresh[token] = "reused"
            fresh = f"refresh-token-{self.issued + 1}"
        self.refresh[fresh] = "valid"
        access = f"access-token-{self.issued + 1}"
        self.access = dict.fromkeys(self.access, "expired") | {access: "valid"}
        return {"access_token": access, "refresh_token": fresh, "id_token": self.id_token()}

    def id_token(self) -> str:
        """Return an id token that parses as a JWT (its signature is not one), with the claims that Codex reads."""
        account = self.account_id or "account-1"
        claims = {
            "email": self.email,
            "https://api.openai.com/auth": {"chatgpt_plan_type": self.plan, "chatgpt_account_id": account},
        }
        return ".".join(_base64(part) for part in (b'{"alg":"none","typ":"JWT"}', json.dumps(claims).encode(), b"signature"))


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
