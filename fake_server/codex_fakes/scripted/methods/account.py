"""The methods account/*.

The login comes from the script (`account`) and from requests of the client, and is kept only in memory. The fake reads no
credentials: if it runs in a user's home directory, it must not reveal the user's tokens. A ChatGPT login returns a URL at
which no server answers. The login at this URL never completes, but the client can cancel it.
"""

from __future__ import annotations

from codex_fakes.scripted.state.ids import uuid4
from codex_fakes.scripted.state.refused import Refused
from codex_replay.protocol.turn.frames import fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Method, Session

#: The forms of 0.92. Later versions have theirs in answers.json ("account").
_FORMS: dict[str, Any] = {
    "read": {"account": "$account", "requiresOpenaiAuth": "$needed"},
    "completed": {"loginId": "$login", "success": "$success", "error": "$error"},
    "updated": {"authMode": "$mode"},
    "query": (
        "response_type=code&client_id=app_EMoamEEZ73f0CkXaXp7hrann&redirect_uri=http%3A%2F%2Flocalhost%3A1455%2Fauth%2Fcallback"
        "&scope=openid%20profile%20email%20offline_access&code_challenge=${challenge}&code_challenge_method=S256"
        "&id_token_add_organizations=true&codex_cli_simplified_flow=true&state=${state}&originator=${originator}"
    ),
}
_NOT_COMPLETED = "Login server error: Login was not completed"


def _form(session: Session, name: str, values: dict[str, Any]) -> Any:
    return fill(session.answers.get("account", _FORMS)[name], values)


def _is_later(session: Session) -> bool:
    """Return True if the version has one login at a time, so that another login or a logout ends a ChatGPT login."""
    return "account" in session.answers


def needed(session: Session) -> bool:
    """Return True if the model provider in the settings requires a login."""
    name = session.config.get("model_provider") or "openai"
    providers = session.config.get("model_providers")
    provider = providers.get(name) if isinstance(providers, dict) else None
    return bool(provider.get("requires_openai_auth")) if isinstance(provider, dict) else bool(name == "openai")


def read(session: Session, request: Any, params: dict[str, Any]) -> None:
    """account/read."""
    account, wanted = session.account, needed(session)
    shown = None
    if account is not None and wanted:
        shown = {key: account[key] for key in ("type", "email", "planType") if key in account}
    session.answer(request, _form(session, "read", {"account": shown, "needed": wanted}))


def status(session: Session, request: Any, params: dict[str, Any]) -> None:
    """getAuthStatus: return the login, and its token if the client requests the token."""
    account, wanted = session.account if needed(session) else None, needed(session)
    if account is not None and not account.get("token") and _is_later(session):
        account = None  # an empty key
    method = None if account is None else account["type"].lower()
    token = account.get("token") if account is not None and params.get("includeToken") else None
    session.answer(request, {"authMethod": method, "authToken": token, "requiresOpenaiAuth": wanted})


def user_info(session: Session, request: Any, params: dict[str, Any]) -> None:
    """userInfo: return the e-mail address of a ChatGPT login."""
    session.answer(request, {"allegedUserEmail": (session.account or {}).get("email")})


def usage(session: Session, request: Any, params: dict[str, Any]) -> None:
    """account/usage/read: refuse the request, because the fake counts no tokens of an account."""
    if session.account is None:
        raise Refused("codex account authentication required to read token usage")
    if session.account["type"] != "chatgpt":
        raise Refused("chatgpt authentication required to read token usage")
    raise Refused("fake-codex has no token usage of a ChatGPT account: add the method's answer to the script (docs/scripts.md)")


def rate_limits(session: Session, request: Any, params: dict[str, Any]) -> None:
    """account/rateLimits/read: return the script's `rate_limits`, in the form of the backend."""
    account = session.account
    if account is None:
        raise Refused("codex account authentication required to read rate limits")
    if account["type"] != "chatgpt":
        raise Refused("chatgpt authentication required to read rate limits")
    limits = session.model.rate_limits or {}
    windows = limits.get("rate_limit") or {}
    shown = {name: _window(windows.get(f"{name}_window")) for name in ("primary", "secondary")}
    plan = limits.get("plan_type", account.get("planType"))
    session.answer(request, {"rateLimits": {**shown, "credits": limits.get("credits"), "planType": plan}})


def _window(window: dict[str, Any] | None) -> dict[str, Any] | None:
    if window is None:
        return None
    minutes = window.get("limit_window_seconds", 0) // 60
    return {"usedPercent": window.get("used_percent"), "windowDurationMins": minutes, "resetsAt": window.get("reset_at")}


# -- logging in and out ---------------------------------------------------------------------------------------------------


def login(session: Session, request: Any, params: dict[str, Any]) -> None:
    """account/login/start: a login with an API key completes immediately; a ChatGPT login returns an id and a URL."""
    kind = params["type"]
    if kind not in ("apiKey", "chatgpt"):
        text = f"fake-codex has no login of the type {kind}: add the method's answer to the script (docs/scripts.md)"
        raise Refused(text)
    if kind == "apiKey":
        _allow_key(session)
        _give_up(session)
        session.account = {"type": "apiKey", "token": params["apiKey"]}
        session.answer(request, {"type": "apiKey"})
        report = _form(session, "completed", {"login": None, "success": True, "error": None})
        session.send({"method": "account/login/completed", "params": report})
        session.send({"method": "account/updated", "params": _form(session, "updated", {"mode": "apikey"})})
    else:
        session.answer(request, {"type": "chatgpt", **_begun(session, "v2")})


def _give_up(session: Session) -> None:
    """End a ChatGPT login that is under way, if the version does so at another login or a logout."""
    if session.login is not None and _is_later(session):
        _ended(session, session.login, _NOT_COMPLETED)
        session.login = None


def _allow_key(session: Session) -> None:
    """Refuse an API key if the configuration demands another kind of login."""
    if session.config.get("forced_login_method") == "chatgpt":
        raise Refused("API key login is disabled. Use ChatGPT login instead.")


def _ended(session: Session, login: tuple[str, str], error: str) -> None:
    """Report to the client that a login has failed."""
    method = "account/login/completed" if login[1] == "v2" else "loginChatGptComplete"
    session.send({"method": method, "params": _form(session, "completed", {"login": login[0], "success": False, "error": error})})


def _begun(session: Session, api: str) -> dict[str, str]:
    from binascii import b2a_base64
    from posix import urandom

    if session.config.get("forced_login_method") == "api":
        raise Refused("ChatGPT login is disabled. Use API key login instead.")
    if session.login is not None:
        _ended(session, session.login, "Login server error: Login cancelled")

    def secret() -> str:
        return b2a_base64(urandom(32), newline=False).decode().rstrip("=").replace("+", "-").replace("/", "_")

    values = {"challenge": secret(), "state": secret(), "originator": session.client_name}
    query = _form(session, "query", values)
    session.login = (uuid4(), api)
    return {"loginId": session.login[0], "authUrl": f"https://auth.openai.com/oauth/authorize?{query}"}


def cancel(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle account/login/cancel: cancel a login that is not completed."""
    found = _cancelled(session, params["loginId"])
    session.answer(request, {"status": "canceled" if found else "notFound"})
    if found:
        _ended(session, (params["loginId"], "v2"), _NOT_COMPLETED)


def _cancelled(session: Session, login_id: str) -> bool:
    from codex_fakes.scripted.state.ids import uuid_error

    error = uuid_error(login_id)
    if error is not None:
        raise Refused(f"invalid login id: {login_id}")
    found = session.login is not None and session.login[0] == login_id
    if found:
        session.login = None
    return found


def logout(session: Session, request: Any, params: dict[str, Any]) -> None:
    """account/logout."""
    _give_up(session)
    session.account = None
    session.answer(request, {})
    session.send({"method": "account/updated", "params": _form(session, "updated", {"mode": None})})


# -- v1 -------------------------------------------------------------------------------------------------------------------


def login_key_v1(session: Session, request: Any, params: dict[str, Any]) -> None:
    """loginApiKey: store the key of the client."""
    _allow_key(session)
    session.account = {"type": "apiKey", "token": params["apiKey"]}
    session.answer(request, {})
    session.send({"method": "authStatusChange", "params": {"authMethod": "apikey"}})


def login_v1(session: Session, request: Any, params: dict[str, Any]) -> None:
    """loginChatGpt: return an id and a URL."""
    session.answer(request, _begun(session, "v1"))


def cancel_v1(session: Session, request: Any, params: dict[str, Any]) -> None:
    """cancelLoginChatGpt."""
    if not _cancelled(session, params["loginId"]):
        raise Refused(f"login id not found: {params['loginId']}")
    session.answer(request, {})
    _ended(session, (params["loginId"], "v1"), _NOT_COMPLETED)


def logout_v1(session: Session, request: Any, params: dict[str, Any]) -> None:
    """logoutChatGpt."""
    session.account = None
    session.answer(request, {})
    session.send({"method": "authStatusChange", "params": {"authMethod": None}})


METHODS: dict[str, Method] = {
    "account/read": read,
    "account/rateLimits/read": rate_limits,
    "account/usage/read": usage,
    "account/login/start": login,
    "account/login/cancel": cancel,
    "account/logout": logout,
    "getAuthStatus": status,
    "userInfo": user_info,
    "loginApiKey": login_key_v1,
    "loginChatGpt": login_v1,
    "cancelLoginChatGpt": cancel_v1,
    "logoutChatGpt": logout_v1,
}
