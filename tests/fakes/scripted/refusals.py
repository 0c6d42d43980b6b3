"""Requests of a wrong form, and the words in which the real Codex 0.92.0 refused each: tests/data/refusals.ndjson."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from codex_replay.shell.rpc.client import Client

FILE = Path(__file__).parents[2] / "data" / "refusals.ndjson"


def rows() -> list[dict[str, Any]]:
    """Return the rows: method, params (THREAD stands for a thread that is open and has no turns), and the refusal's text."""
    return [json.loads(line) for line in FILE.read_bytes().splitlines()]


def otherwise(client: Client, thread: str) -> list[str]:
    """Ask all of it of a server that has said hello; return what it answers otherwise, a sentence each."""
    found = []
    for row in rows():
        answer = client.call(row["method"], json.loads(json.dumps(row["params"]).replace("THREAD", thread)))
        error = answer.get("error", {"code": None, "message": "(no refusal)"})
        if (error["code"], error["message"]) != (-32600, row["refused"]):
            found.append(f"{row['method']} {row['params']}: {error['message']!r} and not {row['refused']!r}")
    return found
