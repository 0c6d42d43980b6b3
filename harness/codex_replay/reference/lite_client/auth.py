"""Read the identity from auth.json, and store new tokens in it (LITE-03 to LITE-08)."""

from __future__ import annotations

import os

from codex_replay.reference.json_text import loads
from codex_replay.reference.lite_client.errors import Problem
from codex_replay.reference.lite_client.settings import read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLAIMS = "https://api.openai.com/auth"
LOG_IN = "Log in again (codex login) to make a new login file."


class Auth:
    """The content of auth.json; raises `Problem` if it has no identity."""

    def __init__(self, path: str) -> None:
        self.path = path
        document = read_json(path, "The login file")
        if not isinstance(document, dict):
            raise Problem(f"The login file {path} is not a JSON object. {LOG_IN}")
        self.document: dict[str, Any] = document
        self.chatgpt = uses_chatgpt(document)
        self.bearer()

    @property
    def tokens(self) -> dict[str, Any]:
        """Return the tokens of the ChatGPT login; return an empty dictionary if there are none."""
        found = self.document.get("tokens")
        return found if isinstance(found, dict) else {}

    def bearer(self) -> str:
        """Return the access token or the API key."""
        where = "tokens.access_token" if self.chatgpt else "OPENAI_API_KEY"
        found = self.tokens.get("access_token") if self.chatgpt else self.document.get("OPENAI_API_KEY")
        if not isinstance(found, str) or not found:
            raise Problem(f"The login file {self.path} has no {where}. {LOG_IN}")
        return found

    def account_id(self) -> str | None:
        """Return the account of a ChatGPT login; None for an API key."""
        if not self.chatgpt:
            return None
        found = self.tokens.get("account_id") or account_of(self.tokens.get("id_token"))
        return found if isinstance(found, str) else None

    def refresh_token(self) -> str:
        """Return the refresh token; raises `Problem` if the login has none."""
        found = self.tokens.get("refresh_token")
        if not isinstance(found, str) or not found:
            raise Problem(f"The access token is not accepted, and {self.path} has no refresh token. {LOG_IN}")
        return found

    def store(self, answer: dict[str, Any]) -> None:
        """Store the tokens that a refresh returned, and write them to auth.json.

        All other members of auth.json stay unchanged. Raises `Problem` if auth.json cannot be written.
        """
        tokens = {**self.tokens, "access_token": answer["access_token"]}
        if answer.get("refresh_token"):
            tokens["refresh_token"] = answer["refresh_token"]
        if answer.get("id_token"):
            tokens["id_token"] = _in_form_of(tokens.get("id_token"), answer["id_token"])
        self.document = {**self.document, "tokens": tokens}
        write(self.path, self.document)


def uses_chatgpt(document: dict[str, Any]) -> bool:
    """Return True if auth.json has a ChatGPT login.

    `auth_mode` in auth.json names the kind of login. If auth.json of Codex 0.92 has no `auth_mode`, an API key has priority
    over a ChatGPT login.
    """
    mode = document.get("auth_mode")
    if mode in ("chatgpt", "api_key"):
        return bool(mode == "chatgpt")
    if mode is not None:
        raise Problem(f'The login file has the auth_mode {mode!r}; "chatgpt" and "api_key" are known. {LOG_IN}')
    return not document.get("OPENAI_API_KEY")


def account_of(id_token: object) -> str | None:
    """Return the account in an id token, which is an object or a JWT."""
    if isinstance(id_token, dict):
        found = id_token.get("chatgpt_account_id")
        return found if isinstance(found, str) else account_of(id_token.get("raw_jwt"))
    if not isinstance(id_token, str):
        return None
    claims = jwt_claims(id_token).get(CLAIMS)
    found = claims.get("chatgpt_account_id") if isinstance(claims, dict) else None
    return found if isinstance(found, str) else None


def jwt_claims(token: str) -> dict[str, Any]:
    """Return the claims of a JWT, without checking its signature. Return an empty dictionary if the text is not a JWT."""
    import base64  # late: few logins need to be asked for their account

    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def _in_form_of(old: object, jwt: str) -> object:
    if not isinstance(old, dict):
        return jwt
    return {**old, "raw_jwt": jwt, "chatgpt_account_id": account_of(jwt) or old.get("chatgpt_account_id")}


def write(path: str, document: dict[str, Any]) -> None:
    """Replace auth.json atomically, so that a reader sees the old or the new file, and make the file readable only for its owner.

    Raises `Problem` if the file cannot be written.
    """
    import contextlib  # late: they are slow to load, and few runs have tokens to write
    import json

    folder, name = os.path.split(path)
    draft = os.path.join(folder, f".{name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2, ensure_ascii=False)
            file.write("\n")
        os.replace(draft, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise Problem(
            f"The new tokens cannot be written to {path}: {error.strerror}. The old tokens no longer work. {LOG_IN}"
        ) from error
