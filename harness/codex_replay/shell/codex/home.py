"""A hermetic home for the real Codex: its config, its credentials, and its complete environment.

In a hermetic home, the binary contacts only one upstream, which should be on loopback, and looks up no host name. The table
``data/any/hermetic-config.json`` has the necessary configuration. Each row of the table has the first version for which it
applies. The rows of the configuration come from REAL-01 to REAL-11, and each row was checked with strace.

    root/home   CODEX_HOME and HOME: config.toml, auth.json
    root/tmp    TMPDIR; not a parent of home, since Codex may let commands write there
    root/work   an empty working directory
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tomli_w

from codex_replay.protocol import data_tables, versions

PROVIDER = "mock"

# The environment, whole: nothing of the caller's own is handed on.
ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
    "HOME": "{home}",
    "CODEX_HOME": "{home}",
    "TMPDIR": "{tmp}",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    # The built-in provider and the refresh of the models list; without it a conversation waits 3 s for chatgpt.com.
    "OPENAI_BASE_URL": "{upstream}/v1",
    "CODEX_REFRESH_TOKEN_URL_OVERRIDE": "{upstream}/oauth/token",
}

FAKE_EMAIL = "fake@codex-replay.invalid"
FAKE_ACCOUNT = "fake-account-0000"
FAKE_USER = "user-1"  # the one that the fake backend names in a refreshed login: a refresh must not change the user
FAKE_KEY = "sk-fake-codex-replay"


@dataclass(frozen=True)
class ApiKey:
    """Log in with an API key (auth.json of mode `apikey`)."""

    key: str = FAKE_KEY

    def encode(self) -> dict[str, object]:
        """Return the content of auth.json."""
        return {"OPENAI_API_KEY": self.key}


@dataclass(frozen=True)
class ChatGpt:
    """A ChatGPT login: auth.json gets ChatGPT tokens.

    `last_refresh` is the time of the last refresh of the tokens, in the form of RFC 3339; "" means now. If `last_refresh`
    is None, auth.json lacks it, and every turn fails. If `last_refresh` is older than eight days, Codex refreshes the
    tokens at its start. `id_token` must be a JWT. If `id_token` is "", a fake JWT for `account_id` is made.
    """

    access_token: str = "fake-access-token"
    refresh_token: str = "fake-refresh-token"
    account_id: str = FAKE_ACCOUNT
    id_token: str = ""
    last_refresh: str | None = ""

    def encode(self) -> dict[str, object]:
        """Return the content of auth.json."""
        tokens = {
            "id_token": self.id_token or make_id_token(account_id=self.account_id),
            "access_token": self.access_token,
            "refresh_token": self.refresh_token,
            "account_id": self.account_id,
        }
        value: dict[str, object] = {"OPENAI_API_KEY": None, "tokens": tokens}
        if self.last_refresh is not None:
            value["last_refresh"] = self.last_refresh or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return value


class HermeticHome:
    """A folder tree under `root`, and an environment in which the real Codex reaches only `upstream_url`.

    `upstream_url` is a URL without a path ("http://127.0.0.1:1234"). Codex expects the Responses API under /v1, the ChatGPT
    API under /backend-api/, and the token refresh at /oauth/token. `version` is the Codex version that will run in the
    home. A text that is not a version number means the default version. The configuration contains the table rows of the
    version, then `features`, then `extra_config` (nested tables as mappings). If the table rows, `features` and
    `extra_config` set the same key, the last value counts. If `auth` is None, no auth.json is written. The constructor of
    `HermeticHome` writes the files; it raises OSError if a file cannot be written.
    """

    def __init__(
        self,
        root: Path,
        upstream_url: str,
        *,
        version: str = versions.DEFAULT,
        model: str = "gpt-5.2-codex",
        approval_policy: str = "never",
        sandbox_mode: str = "read-only",
        auth: ApiKey | ChatGpt | None = None,
        requires_openai_auth: bool = False,
        features: Mapping[str, bool] | None = None,
        extra_config: Mapping[str, Any] | None = None,
    ) -> None:
        root = root.absolute()
        version = version if versions.is_version(version) else versions.DEFAULT
        self.home, self.tmp, self.work = root / "home", root / "tmp", root / "work"
        self.upstream = upstream_url.rstrip("/")
        config: dict[str, Any] = {"model": model, "approval_policy": approval_policy, "sandbox_mode": sandbox_mode}
        for row in data_tables.load("hermetic-config", "any")["rows"]:
            if versions.numbers(row["since"]) <= versions.numbers(version):
                config = merged(config, row["config"])
        if requires_openai_auth:
            config = merged(config, {"model_providers": {PROVIDER: {"requires_openai_auth": True}}})
        config = merged(config, {"features": dict(features)}) if features else config
        self.config: dict[str, Any] = self._filled(merged(config, extra_config or {}))
        self.env: dict[str, str] = self._filled(ENVIRONMENT)
        for folder in (self.home, self.tmp, self.work):
            folder.mkdir(parents=True, exist_ok=True)
        (self.home / "config.toml").write_text(toml(self.config), encoding="utf-8")
        if auth is not None:
            self.write_auth(auth.encode())

    @property
    def auth_file(self) -> Path:
        """Return the path of auth.json, which may not exist."""
        return self.home / "auth.json"

    def write_auth(self, value: Mapping[str, object]) -> None:
        """Write `value` as auth.json, readable only by its owner.

        auth.json is replaced in one step, because Codex may be running at the same time.
        """
        draft = self.home / ".auth.json.new"
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(json.dumps(value, indent=2).encode())
        os.replace(draft, self.auth_file)

    def _filled(self, value: Any) -> Any:
        """Return `value` with the placeholders of the table replaced in all strings."""
        if isinstance(value, Mapping):
            return {key: self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if not isinstance(value, str):
            return value
        for name, text in (("{upstream}", self.upstream), ("{home}", str(self.home)), ("{tmp}", str(self.tmp))):
            value = value.replace(name, text)
        return value


def make_id_token(email: str = FAKE_EMAIL, plan: str = "pro", account_id: str = FAKE_ACCOUNT) -> str:
    """Return an id_token that Codex can parse and that is clearly fake: it has no signature, and its issuer cannot exist.

    The token has the claims that REAL-08 lists, and a user id, which later versions of Codex read.
    """
    auth = {"chatgpt_plan_type": plan, "chatgpt_account_id": account_id, "chatgpt_user_id": FAKE_USER}
    claims = {"iss": "https://codex-replay.invalid", "email": email, "https://api.openai.com/auth": auth}
    header = {"alg": "none", "typ": "JWT"}
    parts = [json.dumps(part, separators=(",", ":")).encode() for part in (header, claims)] + [b"fake-signature"]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merged tables of two configurations, `base` and `over`.

    If both configurations have a key, the value in `over` counts.
    """
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = merged(old, value) if both else value  # type: ignore[arg-type]
    return result


def toml(config: Mapping[str, Any]) -> str:
    """Return a configuration as a TOML document. Raises ValueError for a value that TOML cannot express, such as None."""
    try:
        return tomli_w.dumps(config)
    except TypeError as error:
        raise ValueError(f"A value cannot be written as TOML ({error}); remove its key from the Codex configuration.") from None
