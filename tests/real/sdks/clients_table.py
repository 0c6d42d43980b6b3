"""Run every client against the fake backend, in every scenario, and write the table of what came of it.

    python -m tests.real.sdks.clients_table [CLIENT ...]     runs them and prints JSON: client -> scenario -> [whole, streamed]
    python -m tests.real.sdks.clients_table page             prints docs/clients.md, from the outcomes that clients.json expects

Each client has an environment of its own (client_venv.py) and a driver under drivers/.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from codex_replay.shell.http.backend_process import BackendProcess, BackendSession
from tests.real.sdks.client_venv import node_modules, python_with

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "clients.json"
#: Client -> its environment, its driver, and the driver's arguments.
CLIENTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "openai 1": ("openai-1", "openai_sdk.py", ()),
    "openai 1, async": ("openai-1", "openai_sdk.py", ("async",)),
    "openai 2": ("openai-2", "openai_sdk.py", ()),
    "openai 2, async": ("openai-2", "openai_sdk.py", ("async",)),
    "openai 3": ("openai-3", "openai_sdk.py", ()),
    "openai 3, async": ("openai-3", "openai_sdk.py", ("async",)),
    "langchain-openai": ("langchain-openai", "langchain_client.py", ()),
    "pydantic-ai": ("pydantic-ai", "pydantic_ai_client.py", ()),
    "instructor": ("instructor", "instructor_client.py", ()),
    "llm": ("llm", "llm_client.py", ()),
    "litellm": ("litellm", "litellm_client.py", ()),
    "openai-agents": ("openai-agents", "openai_agents_client.py", ()),
    "npm openai 6": ("openai-npm-6", "openai_npm.mjs", ()),
    "npm openai 7": ("openai-npm-7", "openai_npm.mjs", ()),
    "npm ai": ("ai-sdk", "ai_sdk.mjs", ()),
}


PREAMBLE = """# Clients

This page is for users of an SDK or a framework on the Responses API, and shows which answers of the backend each of these
clients understands. We ran these clients against the fake backend, and changed only their base URL. `make real` runs these
clients again, and compares the results with every cell of the tables. A cell of a table shows what a program gets from the
client: a text, a value, a status, or an exception with its HTTP status. The folder `tests/real/sdks/clients` lists the exact
versions of the clients. The folder `tests/real/sdks/drivers` has the programs that use them.

| scenario | the backend plays |
|---|---|
"""


def _call(number: int, **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "name": "add", "arguments": {"a": 2 * number, "b": 3}, "call_id": f"call_{number}", **more}


#: Scenario -> the turns that the backend plays.
SCENARIOS: dict[str, list[Any]] = {
    "text": ["Hello."],
    "tools": [{"items": [_call(1)]}, {"items": ["It is 5."], "expect": {"outputs": {"call_1": "5"}}}],
    "parallel": [{"items": [_call(1), _call(2)]}, {"items": ["Done."], "expect": {"outputs": {"call_1": "5", "call_2": "7"}}}],
    "structured": ['{"total": 5}'],
    "reasoning": [{"items": [{"type": "reasoning", "summary": ["Two numbers."]}, _call(1)]}, "It is 5."],
    "image": ["Seen."],
    "refusal": [{"items": [{"type": "refusal", "refusal": "I will not."}]}],
    "incomplete": [{"items": ["half", {"type": "incomplete"}]}],
    "400": [{"status": 400, "error": {"message": "no", "code": "invalid_value"}}],
    "401": [{"status": 401, "error": {"message": "no", "code": "invalid_api_key"}}],
    "429": [
        {
            "times": "always",
            "status": 429,
            "error": {"message": "no", "code": "rate_limit_exceeded"},
            "headers": {"retry-after": "0"},
        }
    ],
    "500": [{"times": "always", "status": 500, "error": {"message": "no", "code": "server_error"}}],
    "cut": [{"times": "always", "items": ["A text of some length, which is cut."], "fault": {"name": "cut", "after": 5}}],
    "failed": [{"items": ["half", {"type": "failed", "code": "server_error"}]}],
}
#: Clients that get values as a call of a tool.
_BY_TOOL = {"instructor": "Sum", "pydantic-ai": "final_result"}
_VALUES_ONLY = ("structured", "incomplete", "400", "401", "429", "500", "cut", "failed")


def scenarios(client: str) -> dict[str, list[Any]]:
    """Return the scenarios of a client: instructor does nothing but extract values."""
    found = {name: turns for name, turns in SCENARIOS.items() if client != "instructor" or name in _VALUES_ONLY}
    if client in _BY_TOOL:
        call = {"type": "function_call", "name": _BY_TOOL[client], "arguments": {"total": 5}}
        found["structured"] = [{"items": [call]}]
    return found


def outcomes(backend: BackendProcess, client: str) -> dict[str, list[str]]:
    """Run a client in all its scenarios; return scenario -> [outcome of the whole response, of the streamed one]."""
    environment, driver, arguments = CLIENTS[client]
    sessions: list[tuple[str, BackendSession]] = []
    for name, turns in scenarios(client).items():
        sessions += [(name, backend.session(f"{client} {name} {way}", turns)) for way in ("whole", "streamed")]
    jobs = [{"kind": name, "url": one.url, "streamed": i % 2 == 1} for i, (name, one) in enumerate(sessions)]
    program = str(HERE / "drivers" / driver)
    if driver.endswith(".mjs"):
        argv = ["node", program, str(node_modules(environment))]
    else:
        argv = [python_with(environment), program, *arguments]
    done = subprocess.run(argv, input=json.dumps(jobs), capture_output=True, text=True, timeout=280)
    if done.returncode:
        raise RuntimeError(f"{client}: {done.stderr[-2000:]}")
    found: dict[str, list[str]] = {}
    for (name, session), outcome in zip(sessions, json.loads(done.stdout.splitlines()[-1]), strict=True):
        found.setdefault(name, []).append("; ".join([outcome, *_seen(name, session)]))
    return found


def _seen(name: str, session: BackendSession) -> list[str]:
    """Return what the requests show: items that came, and what the backend refused."""
    inputs = [json.dumps(entry["body"].get("input")) for entry in session.ledger() if isinstance(entry["body"], dict)]
    notes = [problem for problem in session.problems() if name.isalpha()]
    if name == "image":
        notes.append("image sent" if any("input_image" in text for text in inputs) else "no image sent")
    if name == "reasoning":
        notes.append("reasoning sent back" if "encrypted_rs" in inputs[-1] else "reasoning not sent back")
    return notes


def page(expected: dict[str, dict[str, list[str]]]) -> str:
    """Return the page of the documentation."""
    lines = [PREAMBLE.rstrip()]
    lines += [f"| {name} | `{json.dumps(turns)}` |" for name, turns in SCENARIOS.items()]
    for client, cells in expected.items():
        environment = CLIENTS[client][0]
        lines += ["", f"## {client}", "", f"Version {_version(client, environment)}.", ""]
        lines += ["| scenario | whole response | streamed |", "|---|---|---|"]
        lines += [f"| {scenario} | {ways[0]} | {ways[1]} |" for scenario, ways in cells.items()]
    return "\n".join(lines) + "\n"


def _version(client: str, environment: str) -> str:
    """Return the locked version of a client's package."""
    if client.startswith("npm "):
        locked = json.loads((HERE / "clients" / environment / "package-lock.json").read_text())
        return str(locked["packages"][f"node_modules/{client.split()[1]}"]["version"])
    name = "pydantic-ai-slim" if client == "pydantic-ai" else re.split("[ ,]", client)[0]
    found = re.search(rf"^{name}==(\S+)", (HERE / "clients" / f"{environment}.txt").read_text(), re.M)
    assert found is not None, name
    return found[1]


if __name__ == "__main__":
    if sys.argv[1:] == ["page"]:
        print(page(json.loads(EXPECTED.read_text())), end="")
    else:
        with BackendProcess() as process:
            table = {client: outcomes(process, client) for client in sys.argv[1:] or CLIENTS}
        print(json.dumps(table, indent=1))
