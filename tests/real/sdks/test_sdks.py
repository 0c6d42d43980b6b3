"""The OpenAI SDKs as clients of the fake backend, with strict validation of everything it sends.

They are no dependency of ours: each has an environment of its own, made once (client_venv.py).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_replay.protocol import versions
from codex_replay.shell.http.backend_process import BackendProcess
from tests.protocol.responses.test_hosted import HOSTED
from tests.protocol.responses.test_responses import ITEMS as SCRIPTED
from tests.real.sdks.client_venv import python_with

PROBE = Path(__file__).with_name("sdk_probe.py")

ITEMS: dict[str, list[Any]] = {
    "text": ["Hello ✓"],
    "empty": [""],
    "refusal": [{"type": "refusal", "refusal": "no"}],
    "function call": [{"type": "function_call", "name": "add", "arguments": {"a": 1}}],
    "parallel calls": [{"type": "function_call", "name": "add", "arguments": {"a": i}} for i in range(3)],
    "custom tool call": [{"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch"}],
    "web search": [{"type": "web_search_call", "query": "cats"}, "Found."],
    "opened page": [{"type": "web_search_call", "action": {"type": "open_page", "url": "https://example.com"}}],
    "reasoning": [{"type": "reasoning", "summary": ["a", "b"], "content": "c", "encrypted_content": "x"}, "ok"],
    "failed": ["half", {"type": "failed", "code": "server_error"}],
    "incomplete": ["half", {"type": "incomplete"}],
    "cut call": [{"type": "function_call", "name": "add", "arguments": '{"a":'}, {"type": "incomplete"}],
    "nothing": [],
}
ENDS = {"failed": "failed", "incomplete": "incomplete", "cut call": "incomplete"}


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def probe(client: str, *arguments: str) -> Any:
    """Run the probe with this client; return what it prints."""
    done = subprocess.run([python_with(client), str(PROBE), *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize(("client", "version"), [("openai-3", versions.OPENAI), ("openai-2", "2.54.0"), ("openai-1", "1.109.1")])
def test_every_kind_is_valid_to_the_sdk(backend: BackendProcess, client: str, version: str) -> None:
    turns = [{"match": f"<{i}>", "items": items, "times": "always"} for i, items in enumerate(ITEMS.values())]
    turns.append({"match": "<structured>", "items": ['{"total": 5}'], "times": "always"})
    session = backend.session(f"sdk {client}", {"turns": turns, "auth": {"mode": "api_key", "api_key": "sk-1"}})
    report = probe(client, session.url + "/v1", str(len(ITEMS)))
    assert report["version"] == version
    for way in ("sync", "async"):
        for name, (status, text, outputs, streamed, helped) in zip(ITEMS, report[way], strict=True):
            kinds = [item for item in ITEMS[name] if isinstance(item, str) or item["type"] not in ENDS]
            assert status == ENDS.get(name, "completed"), name
            assert text == "".join(item for item in ITEMS[name] if isinstance(item, str)), name
            assert outputs == len(kinds), name
            assert streamed == helped, name
            assert streamed[-1] == f"response.{status}", name
    echoed = report["settings"]
    assert (echoed["parsed"], echoed["format"], echoed["instructions"]) == ([5, 5], "Sum", "Be brief.")
    assert (echoed["metadata"], echoed["temperature"]) == ({"trace": "7"}, 0.5)
    assert echoed["tool_choice"] == {"type": "function", "name": "add"}
    assert [tool["name"] for tool in echoed["tools"]] == ["add"]
    kinds = ["response.content_part.added", "response.completed"]
    conversation = [["message"] * 3, "message", {"a": "c"}, ["message", "compaction"], True]
    assert report["state"] == [*conversation, ["message"], "completed", *kinds, True, 404, "gpt-5.2-codex"]
    assert report["models"] == ["gpt-5.2-codex"]
    assert session.problems(but=[404]) == []


@pytest.mark.parametrize(("client", "known"), [("openai-3", 59), ("openai-2", 53), ("openai-1", 53)])
def test_every_event_of_the_sdk_comes_from_items_and_is_valid(backend: BackendProcess, client: str, known: int) -> None:
    # The package's types lack the error codes that are Codex's own.
    groups = [items for name, items in {**SCRIPTED, **HOSTED}.items() if name != "failed as codex"]
    turns = [{"match": f"<{i}>", "items": items, "times": "always"} for i, items in enumerate(groups)]
    report = probe(client, backend.session(f"events {client}", {"turns": turns}).url + "/v1", str(len(groups)), "events")
    assert report["wrong"] == []
    assert len(report["known"]) == known
    assert set(report["known"]) <= set(report["sent"])
    assert len(report["sent"]) == 59
    assert all("shell_call" in newer or "compact" in newer or newer == "apply_patch_call" for newer in report["newer"])
    assert (report["newer"] == []) == (client == "openai-3")
    assert set(report["known"]) - set(report["read"]) == {"error"}, "the strict client reads all but the error, which it raises"


def test_the_agents_sdk_runs_a_tool(backend: BackendProcess) -> None:
    call = {"type": "function_call", "name": "add", "arguments": {"a": 2, "b": 3}, "call_id": "call_1"}
    session = backend.session("agents", [{"items": [call]}, {"items": ["It is 5."], "expect": {"outputs": {"call_1": "5"}}}])
    assert probe("openai-agents", session.url + "/v1", "agents") == {"output": "It is 5."}
    assert session.problems() == []


def test_the_vendored_event_types_are_those_of_the_package() -> None:
    tool = PROBE.parents[2] / "tools" / "gen_openai_events.py"
    done = subprocess.run([python_with("openai-3"), str(tool), "--check"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
