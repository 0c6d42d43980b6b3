"""The minimal test scripts of LITE-69, under their names; each runs as a module and reads the LITE_ variables.

python -m codex_replay.reference.lite_client.examples.test_request
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from codex_replay.reference.lite_client.auth import Auth
from codex_replay.reference.lite_client.client import Client
from codex_replay.reference.lite_client.errors import Problem
from codex_replay.reference.lite_client.settings import from_env
from codex_replay.reference.lite_client.tools import Tools

#: LITE-45 to LITE-47.
ADD: dict[str, Any] = {
    "type": "function",
    "name": "add",
    "description": "Add two numbers",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
}
WEB_SEARCH: dict[str, Any] = {"type": "web_search", "external_web_access": True}


def connect(*specs: dict[str, Any]) -> Client:
    """Return a client that offers the given tools, for a new conversation.

    Raises `Problem` if a setting or auth.json is invalid.
    """
    settings = from_env(os.environ)
    tools = Tools(None)
    tools.specs = list(specs)
    return Client(settings, Auth(settings.auth_file), tools)


def run(script: Callable[[], int]) -> None:
    """Run an example script and exit with its status. After a `Problem`, print its message and exit with status 1."""
    try:
        status = script()
    except Problem as problem:
        sys.stderr.write(f"{problem}\n")
        status = 1
    sys.exit(status)
