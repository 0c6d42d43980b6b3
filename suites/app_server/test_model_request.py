"""The parts of a request to the model that depend on the model's name. Source: docs/contract/real-0.92.md, section 3.

On a live server, a case checks the body of the request. In a replay, a case checks the settings in the server's answer.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin import AppServer
from suites.app_server.expected import text
from suites.app_server.turns import run

REASONING = {"effort": "medium", "summary": "auto"}
ENCRYPTED = ["reasoning.encrypted_content"]
#: model -> the members of the body that depend on it (an absent one is not listed)
BODIES: dict[str, dict[str, Any]] = {
    "gpt-5.2-codex": {"parallel_tool_calls": True, "reasoning": REASONING, "include": ENCRYPTED},
    "gpt-5.2": {"parallel_tool_calls": True, "reasoning": REASONING, "include": ENCRYPTED, "text": {"verbosity": "low"}},
    "unheard-of": {"parallel_tool_calls": False, "reasoning": None, "include": []},
}
#: 0.169.0 knows none of these models, and asks each of them alike.
UNKNOWN: dict[str, Any] = {"parallel_tool_calls": True, "reasoning": {"summary": "auto"}, "include": ENCRYPTED}
NAMES = ("parallel_tool_calls", "reasoning", "include", "text")


@pytest.mark.parametrize("model", BODIES)
def test_what_depends_on_the_model(app_server: AppServer, model: str) -> None:
    """The model decides on parallel calls, reasoning and the verbosity of the text. (REAL-28, REAL-29, REAL-30)"""
    server = app_server([{"items": [text("Hello")]}])
    server.initialize()
    started = server.request("thread/start", {"cwd": server.work, "model": model})
    assert started["model"] == model
    assert run(server, started["thread"]["id"])["status"] == "completed"
    if server.upstream is not None:
        (body,) = [entry["body"] for entry in server.upstream.ledger() if entry["method"] == "POST"]
        assert body["model"] == model
        assert {name: body[name] for name in NAMES if name in body} == server.by_version(
            {"0.0.0": BODIES[model], "0.169.0": UNKNOWN}
        )
