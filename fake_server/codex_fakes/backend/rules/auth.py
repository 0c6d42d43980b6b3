"""The rules for the headers that identify a client: the bearer token, the account, and the other headers of the Codex backend.

The auth mode of the session decides which of the rules for headers apply. In the mode "auto", a path of the ChatGPT backend
(`.../backend-api/codex/...`) requires the headers of LITE-24 to LITE-29. On other paths, no rule for headers applies,
because the real client sends no bearer token to a custom provider (REAL-24).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from codex_fakes.backend.rules.tokens import Tokens

CHATGPT_PATH = "/backend-api/codex/"

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

#: The wrong parameter or header, and a sentence with the fix.
RuleFinding = tuple[str | None, str]


class Asked:
    """The parts of a request that the rules check: path, headers by name, raw body and decoded body.

    The rule `not_json` decodes the body; if the caller has given the decoded body as `known`, nothing is decoded. If
    `counted` is False, the request does not count as a use of its token.
    """

    __slots__ = (
        *("account", "bearer", "body", "call_ids", "calls", "data", "header", "items", "kinds", "known", "mode", "path", "state"),
    )

    def __init__(
        self,
        path: str,
        header: Callable[[str], str | None],
        data: bytes,
        tokens: Tokens,
        known: dict[str, Any] | None = None,
        *,
        counted: bool = True,
    ) -> None:
        self.path = path
        self.known = known
        self.header = header
        self.data = data
        self.body: dict[str, Any] = {}
        #: The items of `input`, their types (None: no text), and the calls and outputs among them with their places and types.
        self.items: list[Any] = []
        self.kinds: list[str | None] = []
        self.calls: list[tuple[int, dict[str, Any], str]] = []
        self.call_ids: dict[str, set[str]] | None = None
        self.account = tokens.account_id
        self.mode = tokens.mode
        if self.mode == "auto":
            self.mode = "chatgpt" if self.chatgpt_path else "none"
        given = header("authorization") or ""
        self.bearer = given[7:].strip() if given[:7].lower() == "bearer " else ""
        #: The state of the bearer: None if valid (or not checked), else "expired", "revoked" or "wrong".
        self.state = tokens.check_bearer(self.bearer, self.mode, counted) if self.bearer and self.mode != "none" else None

    @property
    def chatgpt_path(self) -> bool:
        """Return True if the request has the base path of the ChatGPT backend."""
        return CHATGPT_PATH in self.path


def bearer_missing(asked: Asked) -> RuleFinding | None:
    """Find a missing `Authorization: Bearer` if the auth mode requires a bearer token."""
    if asked.mode == "none" or asked.bearer:
        return None
    given = asked.header("authorization")
    had = "It is missing" if given is None else "It is not a bearer"
    return (
        "authorization",
        f'The header "Authorization: Bearer <token>" is required. {had}: send the access token or the API key.',
    )


def bearer_expired(asked: Asked) -> RuleFinding | None:
    """Find an access token that has expired."""
    if asked.state != "expired":
        return None
    return "authorization", "The access token has expired. Refresh it at the token URL and send the new token."


def bearer_revoked(asked: Asked) -> RuleFinding | None:
    """Find a revoked access token."""
    return ("authorization", "The access token was revoked. Log in again.") if asked.state == "revoked" else None


def bearer_wrong(asked: Asked) -> RuleFinding | None:
    """Find a bearer token that the session has not issued."""
    if asked.state != "wrong":
        return None
    what = "API key" if asked.mode == "api_key" else "access token"
    return "authorization", f"The {what} is unknown. Send the token that was issued last."


def account_missing(asked: Asked) -> RuleFinding | None:
    """Find a missing account header with a ChatGPT login."""
    if asked.mode != "chatgpt" or asked.header("chatgpt-account-id"):
        return None
    return "chatgpt-account-id", (
        'The header "chatgpt-account-id" is required under ChatGPT auth: send tokens.account_id, '
        "or tokens.id_token.chatgpt_account_id."
    )


def account_wrong(asked: Asked) -> RuleFinding | None:
    """Find a header with another account than the account of the session. A session without an account accepts every account."""
    given = asked.header("chatgpt-account-id")
    if asked.mode != "chatgpt" or asked.account is None or given == asked.account:
        return None
    return "chatgpt-account-id", f'The access token is not for the account "{given}". Send the account of the token.'


def account_under_key(asked: Asked) -> RuleFinding | None:
    """Find an account header in a request with an API key."""
    if asked.mode != "api_key" or asked.header("chatgpt-account-id") is None:
        return None
    return "chatgpt-account-id", 'The header "chatgpt-account-id" is for ChatGPT auth only: leave it out with an API key.'


def originator_missing(asked: Asked) -> RuleFinding | None:
    """Find a missing originator on the ChatGPT path."""
    if not _codex_headers(asked) or asked.header("originator"):
        return None
    return "originator", 'The header "originator" is required: send "codex_cli_rs" or a name of your own.'


def session_id(asked: Asked) -> RuleFinding | None:
    """Find a missing or invalid session id (not a uuid) on the ChatGPT path."""
    if not _codex_headers(asked):
        return None
    given = asked.header("session_id")
    if given is None:
        return "session_id", 'The header "session_id" is required: send the uuid of the conversation.'
    if UUID.fullmatch(given) is None:
        return "session_id", f'The header "session_id" must be a uuid, not "{given}".'
    return None


def user_agent_missing(asked: Asked) -> RuleFinding | None:
    """Find a missing user agent on the ChatGPT path."""
    if not _codex_headers(asked) or asked.header("user-agent"):
        return None
    return "user-agent", 'The header "User-Agent" is required: send "codex_cli_rs/<version>".'


def _codex_headers(asked: Asked) -> bool:
    """Return True if a request must have the headers of Codex.

    On the path of the ChatGPT backend, the headers of Codex are required, even with an API key (LITE-29). On any other path, an
    SDK with an API key may omit them.
    """
    return asked.mode in ("chatgpt", "api_key") and asked.chatgpt_path
