"""The environment variables of the client (docs/lite-client.md)."""

from __future__ import annotations

import os

from codex_replay.reference.json_text import loads
from codex_replay.reference.lite_client.errors import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

BASE_URL = "https://chatgpt.com/backend-api/codex"
TOKEN_URL = "https://auth.openai.com/oauth/token"
MODEL = "gpt-5.2-codex"
INSTRUCTIONS = "You are a helpful assistant."
TIMEOUT = 300.0


class Settings:
    """The settings of the reference lite client: the server, the login and the request.

    `timeout` is the longest time, in seconds, without a received byte. `schema` is the JSON Schema of the answer.

    `transport` is "http" or "websocket".
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        schema = given.get("LITE_OUTPUT_SCHEMA")
        self.base_url = given.get("LITE_BASE_URL", BASE_URL).rstrip("/")
        self.token_url = given.get("LITE_TOKEN_URL", TOKEN_URL)
        self.auth_file = given.get("LITE_AUTH_FILE") or os.path.expanduser("~/.codex/auth.json")
        self.model = given.get("LITE_MODEL", MODEL)
        self.instructions = given.get("LITE_INSTRUCTIONS", INSTRUCTIONS)
        self.tools_file = given.get("LITE_TOOLS")
        self.schema: Any = read_json(schema, "The output schema") if schema else None
        self.timeout = _timeout(given.get("LITE_TIMEOUT"))
        self.transport = given.get("LITE_TRANSPORT", "http")


def from_env(env: Mapping[str, str]) -> Settings:
    """Read the settings from environment variables.

    An empty variable counts as unset. Raises `Problem` if a variable is invalid.
    """
    return Settings({name: value for name, value in env.items() if name.startswith("LITE_") and value})


def read_json(path: str, what: str) -> Any:
    """Read a JSON file; raises `Problem`, whose text calls the file `what`."""
    try:
        with open(path, "rb") as file:
            return loads(file.read())
    except OSError as error:
        raise Problem(f"{what} {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise Problem(f"{what} {path} is not JSON: {error}.") from error


def _timeout(text: str | None) -> float:
    try:
        found = float(text) if text else TIMEOUT
    except ValueError:
        found = 0
    if not found > 0:
        raise Problem(f"LITE_TIMEOUT is {text!r}; give a number of seconds.")
    return found
