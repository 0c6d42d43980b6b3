"""The routes of the ChatGPT backend for the account of a login: its usage, its workspaces, its settings."""

from __future__ import annotations

from typing import Any

from codex_fakes.backend.answers import refuse, respond_json
from codex_fakes.backend.exchange import Exchange
from codex_fakes.backend.ledger import Entry
from codex_fakes.backend.rules.auth import Asked
from codex_fakes.backend.rules.table import AUTH_RULES, first_violation
from codex_fakes.backend.rules.tokens import ACCOUNT
from codex_fakes.backend.sessions import Session


async def usage(exchange: Exchange, session: Session, entry: Entry, path: str, query: str) -> None:
    """Answer with the rate limits of the script, or with the limits of an account that has used almost nothing."""
    if _refused(exchange, session, entry, path):
        return
    window = {"used_percent": 1, "limit_window_seconds": 18000, "reset_after_seconds": 18000, "reset_at": 1735707600}
    limits = session.script.rate_limits if session.script is not None else None
    value = limits or {
        "plan_type": session.tokens.plan,
        "rate_limit": {"allowed": True, "limit_reached": False, "primary_window": window, "secondary_window": None},
        "credits": None,
    }
    respond_json(exchange, entry, 200, value)


async def workspaces(exchange: Exchange, session: Session, entry: Entry, path: str, query: str) -> None:
    """Answer with the only workspace of the account.

    The origin in the answer is the fake backend itself. Without the account of the login, an https origin and a routing
    override in the answer, `account/read` of Codex 0.169.0 fails. Codex does not connect to the origin in the answer if the
    configuration names the base URLs.
    """
    if _refused(exchange, session, entry, path, expires=False):
        return
    account = session.tokens.account_id or exchange.request.header("chatgpt-account-id") or ACCOUNT
    value: dict[str, Any] = {
        "id": account,
        "name": None,
        "structure": "personal",
        "plan_type": session.tokens.plan,
        "workspace_backend_origin": f"https://{exchange.request.header('host') or '127.0.0.1'}",
        "account_routing_override": "NO_CONSTRAINT",
    }
    respond_json(exchange, entry, 200, {"accounts": [value], "account_ordering": [account], "default_account_id": account})


async def settings(exchange: Exchange, session: Session, entry: Entry, path: str, query: str) -> None:
    """Answer with the user's settings, which Codex 0.169.0 reads before a turn."""
    if not _refused(exchange, session, entry, path, expires=False):
        respond_json(exchange, entry, 200, {"commit_attribution_enabled": False})


async def reset_credits(exchange: Exchange, session: Session, entry: Entry, path: str, query: str) -> None:
    """Answer that the account has no credits to reset its rate limits.

    Codex 0.169.0 requests the credits that reset rate limits together with the usage.
    """
    if not _refused(exchange, session, entry, path, expires=False):
        respond_json(exchange, entry, 200, {"available_count": 0, "credits": []})


def _refused(exchange: Exchange, session: Session, entry: Entry, path: str, *, expires: bool = True) -> bool:
    """Refuse a request for account data without a valid login.

    Return True if the request was refused. In the auth mode `auto`, no login is required. If `expires` is False, an expired
    token is accepted, and the use of the token is not counted. Codex requests the account routes at unpredictable times,
    and a 401 from them makes Codex refresh the login. If account requests counted as uses of a token, a script could not
    decide which request is the first with a new token.
    """
    if session.tokens.mode == "auto":
        return False
    off = session.rules_off
    asked = Asked(path, exchange.request.header, b"", session.tokens, counted=expires)
    violation = first_violation(asked, AUTH_RULES, off if expires else (*off, "bearer-expired"))
    if violation is not None:
        refuse(exchange, entry, violation)
    return violation is not None
