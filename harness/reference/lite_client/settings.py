"""The environment that the client is run with (docs/lite-client.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.reference.lite_client.errors import Problem

BASE_URL = "https://chatgpt.com/backend-api/codex"
TOKEN_URL = "https://auth.openai.com/oauth/token"
MODEL = "gpt-5.2-codex"
INSTRUCTIONS = "You are a helpful assistant."
TIMEOUT = 300.0


class Settings(NamedTuple):
    """Where to send, as whom, what to ask for; `timeout` in seconds without a byte, `schema` that of the answer."""

    base_url: str
    token_url: str
    auth_file: Path
    model: str
    instructions: str
    tools_file: Path | None
    schema: Any
    timeout: float


def from_env(env: Mapping[str, str]) -> Settings:
    """Read the settings; an empty variable counts as none. Raises `Problem`."""
    given = {name: value for name, value in env.items() if name.startswith("LITE_") and value}
    tools, schema = given.get("LITE_TOOLS"), given.get("LITE_OUTPUT_SCHEMA")
    return Settings(
        given.get("LITE_BASE_URL", BASE_URL).rstrip("/"),
        given.get("LITE_TOKEN_URL", TOKEN_URL),
        Path(given.get("LITE_AUTH_FILE") or os.path.expanduser("~/.codex/auth.json")),
        given.get("LITE_MODEL", MODEL),
        given.get("LITE_INSTRUCTIONS", INSTRUCTIONS),
        Path(tools) if tools else None,
        read_json(Path(schema), "The output schema") if schema else None,
        _seconds(given.get("LITE_TIMEOUT")),
    )


def read_json(path: Path, what: str) -> Any:
    """Read a JSON file; raises `Problem`, which calls it `what`."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise Problem(f"{what} {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise Problem(f"{what} {path} is not JSON: {error}.") from error


def _seconds(text: str | None) -> float:
    try:
        found = float(text) if text else TIMEOUT
    except ValueError:
        found = 0
    if not found > 0:
        raise Problem(f"LITE_TIMEOUT is {text!r}; give a number of seconds.")
    return found
