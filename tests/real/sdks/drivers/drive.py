"""What every driver shares: the tool, the jobs on stdin, the outcomes on stdout as JSON. It runs in its client's environment."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

MODEL = "gpt-5.2-codex"
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
#: The tool that the scripts of test_clients.py call, as a function of the Responses API.
ADD: dict[str, Any] = {
    "type": "function",
    "name": "add",
    "description": "Add two numbers.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
    "strict": True,
}


def main(run: Callable[[str, str, bool], Any]) -> None:
    """Do each job `{"kind": ..., "url": ..., "streamed": ...}` and print the outcomes; an exception is its name and status."""
    print(json.dumps([outcome(run, job) for job in json.load(sys.stdin)]))


def outcome(run: Callable[[str, str, bool], Any], job: dict[str, Any]) -> str:
    """Return what came of a job, as one short text."""
    try:
        return str(run(job["kind"], job["url"] + "/v1", job["streamed"]))
    except Exception as error:
        status = getattr(error, "status_code", None)
        return f"{type(error).__name__} {status}" if isinstance(status, int) else type(error).__name__
