"""What the scripted fake shows of items of the model in the corners, and how a turn depends on config.toml, as in 0.92.0.

Each statement was watched on the real binary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.scripted.test_scripted import Started, of, start, status, texts

__all__ = ["start"]  # the fixture

Start = Callable[..., Started]
SHELL = {"type": "function_call", "name": "shell_command", "arguments": {"command": "echo 1"}, "call_id": "call_1"}
PATCH = "*** Begin Patch\n*** Add File: sub/new.txt\n+one\n*** End Patch"


def reasoning(*summary: str, **more: Any) -> dict[str, Any]:
    return {"type": "reasoning", "summary": list(summary), **more}


def listed(fake: Started, thread: str) -> list[list[Any]]:
    """Return the items of each turn as thread/read lists them: a text, or the summary and the content of a reasoning."""
    found = fake.client.request("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]
    return [[item.get("text") or [item["summary"], item["content"]] for item in turn["items"][1:]] for turn in found]


def test_reasonings_in_a_row_are_listed_as_one_without_empty_texts(start: Start) -> None:
    fake = start([{"items": [reasoning("A", ""), reasoning("B"), "x", reasoning(""), reasoning(), "y", reasoning("", "D")]}])
    thread = fake.thread()
    fake.turn(thread)
    assert listed(fake, thread) == [[[["A", "B"], []], "x", "y", [["D"], []]]]


def test_a_review_lists_reasonings_twice_and_all_messages(start: Start) -> None:
    first = {"items": [reasoning("A", content="raw"), "First.", {**SHELL, "result": {}}]}
    fake = start([first, {"items": ["Second.", reasoning("C"), {**SHELL, "call_id": "call_2", "result": {}}]}, "Last."])
    thread = fake.thread(config={"show_raw_agent_reasoning": True})
    fake.client.request("review/start", {"threadId": thread, "target": {"type": "uncommittedChanges"}})
    fake.client.notification("turn/completed", threadId=thread)
    assert listed(fake, thread)[1] == [[["A", "A"], ["raw", "raw"]], "First.", [["C", "C"], []], "Second.", "Last."]


def test_a_message_without_an_id_gets_one_at_its_begin_and_another_at_its_end(start: Start) -> None:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One"}]}
    fake = start([{"items": [{"type": "item", "item": message}]}])
    said = [m for m in fake.turn(fake.thread()) if of(m, "item/started") or of(m, "item/completed")]
    begun, ended = [m["params"]["item"]["id"] for m in said if m["params"]["item"]["type"] == "agentMessage"]
    assert len(begun) == len(ended) == 36
    assert begun != ended


def test_the_first_usage_decides_on_the_window_even_if_it_is_unknown(start: Start) -> None:
    fake = start(["a", "b", "c"])
    thread = fake.thread(model="my-model")
    windows = []
    for model in ("my-model", "gpt-5.2"):
        said = fake.turn(thread, model=model)
        windows += [m["params"]["tokenUsage"]["modelContextWindow"] for m in said if of(m, "thread/tokenUsage/updated")]
    assert set(windows) == {None}
    fake.client.request("thread/rollback", {"threadId": thread, "numTurns": 1})
    said = fake.turn(thread)
    assert {m["params"]["tokenUsage"]["modelContextWindow"] for m in said if of(m, "thread/tokenUsage/updated")} == {258400}


def test_a_command_that_cannot_run_has_an_error_and_no_output(start: Start) -> None:
    error = "execution error: Sandbox(Signal(9))"
    fake = start([{"items": [{**SHELL, "result": {"error": error}}]}, "Done."])
    said = fake.turn(fake.thread())
    [done] = [m["params"]["item"] for m in said if of(m, "item/completed") and m["params"]["item"]["type"] == "commandExecution"]
    assert (done["status"], done["exitCode"], done["aggregatedOutput"]) == ("failed", -1, error)
    assert not any(of(m, "item/commandExecution/outputDelta") for m in said)
    assert fake.ledger()[1]["body"]["input"][-1]["output"] == error


def test_the_configuration_limits_the_output_of_a_command(start: Start) -> None:
    lines = "".join(f"{number}\n" for number in range(1, 301))
    fake = start([{"items": [{**SHELL, "result": {"stdout": lines}}]}, "Done."])
    said = fake.turn(fake.thread(config={"tool_output_token_limit": 100}))
    [end] = [m["params"]["msg"] for m in said if of(m, "codex/event/exec_command_end")]
    assert end["formatted_output"].startswith("Total output lines: 300\n\n1\n2\n")
    assert "\u2026173 tokens truncated\u2026" in end["formatted_output"]
    output = fake.ledger()[1]["body"]["input"][-1]["output"]
    assert "Total output lines: 300\nOutput:\n1\n2\n" in output
    assert "\u2026173 tokens truncated\u2026" in output


@pytest.mark.parametrize(
    ("model", "config", "cut"),
    [
        ("gpt-5.2-codex", {}, None),
        ("gpt-5.2", {}, "8893 chars"),
        ("my-model", {}, "8893 chars"),
        ("gpt-5.1-codex", {"tool_output_token_limit": 2000}, "2724 tokens"),
        ("gpt-5.1", {"tool_output_token_limit": 2000}, "10893 chars"),
    ],
)
def test_the_model_decides_how_an_output_is_truncated(start: Start, model: str, config: dict[str, Any], cut: str | None) -> None:
    lines = "".join(f"{number}\n" for number in range(1, 4001))
    fake = start([{"items": [{**SHELL, "result": {"stdout": lines}}]}, "Done."])
    fake.turn(fake.thread(model=model, config=config))
    output = fake.ledger()[1]["body"]["input"][-1]["output"]
    assert (f"\u2026{cut} truncated\u2026" in output) if cut else output.endswith(lines)


@pytest.mark.parametrize(
    "turn",
    [
        {"items": ["First.", {"type": "wait", "ms": 900}, "late"]},
        {"items": ["First.", {"type": "wait", "ms": 100}, {"type": "wait", "ms": 100}, {"type": "wait", "ms": 100}, "late"]},
        {"items": ["First."], "delay_ms": 400},
    ],
)
def test_a_stream_may_not_be_silent_for_longer_than_the_idle_time(start: Start, turn: dict[str, Any]) -> None:
    fake = start([turn, "Fine."])
    limits = {"model_providers.mock.stream_idle_timeout_ms": 200, "model_providers.mock.stream_max_retries": 0}
    said = fake.turn(fake.thread(config=limits))
    assert status(said) == "failed"
    assert said[-1]["params"]["turn"]["error"]["message"].endswith("idle timeout waiting for SSE")
    assert "late" not in texts(said)


def test_a_call_of_an_attempt_that_fails_needs_no_further_request(start: Start) -> None:
    fake = start([{"items": [{**SHELL, "result": {}}, {"type": "wait", "ms": 900}]}, "Fine.", "Too much."])
    limits = {"model_providers.mock.stream_idle_timeout_ms": 200, "model_providers.mock.stream_max_retries": 1}
    said = fake.turn(fake.thread(config=limits))
    assert texts(said) == ["Fine."]


def test_short_silences_between_events_are_no_idle_time(start: Start) -> None:
    fake = start([{"items": ["First.", {"type": "wait", "ms": 150}, "Second.", {"type": "wait", "ms": 150}, "Third."]}])
    assert len(texts(fake.turn(fake.thread(config={"model_providers.mock.stream_idle_timeout_ms": 250})))) == 3


def test_in_a_repository_the_diff_of_a_turn_has_paths_from_its_root(start: Start) -> None:
    patch = {"type": "custom_tool_call", "name": "apply_patch", "input": PATCH, "call_id": "call_1"}
    fake = start({"turns": [{"items": [patch]}, "Done."], "git": {"sha": "a" * 40, "branch": "main", "originUrl": None}})
    said = fake.turn(fake.thread(sandbox="danger-full-access"))
    diffs = {m["params"]["diff"].splitlines()[0] for m in said if of(m, "turn/diff/updated")}
    assert diffs == {"diff --git a/sub/new.txt b/sub/new.txt"}


@pytest.mark.parametrize("version", ["0.92.0", "0.169.0"])
def test_a_project_of_the_configuration_decides_on_the_defaults_of_its_directory(start: Start, version: str) -> None:
    def config(text: str) -> str:
        lines = [line for line in text.splitlines() if not line.startswith(("approval_policy", "sandbox_mode"))]
        for path, trust in (("/trusted", "trusted"), ("/not", "untrusted")):
            lines += [f'[projects."{path}"]', f'trust_level = "{trust}"']
        return "\n".join(lines)

    fake = start([], FAKE_CODEX_VERSION=version, config=config)
    found = {}
    for cwd in ("/trusted", "/trusted/", "/not", "/trusted/inner"):
        opened = fake.client.request("thread/start", {"cwd": cwd})
        found[cwd] = opened["approvalPolicy"], opened["sandbox"]["type"]
    assert found == {
        "/trusted": ("on-request", "workspaceWrite"),
        "/trusted/": ("on-request", "workspaceWrite"),
        "/not": ("untrusted", "workspaceWrite"),
        "/trusted/inner": ("on-request", "readOnly"),
    }
    opened = fake.client.request("thread/start", {"cwd": "/not", "sandbox": "read-only", "approvalPolicy": "never"})
    assert (opened["approvalPolicy"], opened["sandbox"]["type"]) == ("never", "readOnly")


@pytest.mark.parametrize("version", ["0.92.0", "0.169.0"])
@pytest.mark.parametrize(
    ("hint", "value", "words"),
    [
        (None, None, "Missing environment variable: `KEY`."),
        ("Get one.", " ", "Missing environment variable: `KEY`. Get one."),
        (None, "sk", None),
    ],
)
def test_a_provider_needs_its_key_in_the_environment(start: Start, hint: Any, value: Any, words: Any, version: str) -> None:
    fake = start(["a"], FAKE_CODEX_VERSION=version, **({} if value is None else {"KEY": value}))
    more = {} if hint is None else {"model_providers.mock.env_key_instructions": hint}
    said = fake.turn(fake.thread(config={"model_providers.mock.env_key": "KEY", **more}))
    error = said[-1]["params"]["turn"]["error"]
    assert (error and error["message"]) == words
    assert len(fake.ledger()) == (words is None)
