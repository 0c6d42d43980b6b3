"""Repeat the six edge cases LITE-63 to LITE-68 of the backend, and compare their HTTP statuses with those in the specification.

For each edge case, print the actual status and the status in the specification.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codex_replay.reference.lite_client.client import user_message
from codex_replay.reference.lite_client.errors import Problem
from codex_replay.reference.lite_client.examples import ADD, connect, run

Item = dict[str, Any]
QUESTION = user_message("What is 2 + 3?")


def call(call_id: str, arguments: str = '{"a":2,"b":3}') -> Item:
    """Return an input item for a tool call that the model might have made."""
    return {"type": "function_call", "name": "add", "arguments": arguments, "call_id": call_id}


def output(call_id: str, text: str = "5") -> Item:
    """Return the output item for a tool call."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def cases() -> Iterator[tuple[str, int, list[Item], list[Item]]]:
    """Yield each case: its description, its status in the specification, the tools, the input."""
    broken = {**ADD, "parameters": {"type": "nonsense"}}
    yield "1. invalid tool schema", 200, [broken], [QUESTION]
    yield "2. invalid arguments JSON", 200, [ADD], [QUESTION, call("call_1", '{"a":2,'), output("call_1", "err: no JSON")]
    yield "3. missing function_call in the follow-up", 400, [ADD], [QUESTION, output("call_1")]
    yield "4. no tools but asked to call", 200, [], [user_message("Call the tool add with 2 and 3.")]
    yield "5. large tool output", 200, [ADD], [QUESTION, call("call_1"), output("call_1", "x" * 20_000)]
    calls = [call("call_1"), call("call_2", '{"a":20,"b":30}')]
    yield "6. parallel calls, outputs in mixed order", 200, [ADD], [QUESTION, *calls, output("call_2", "50"), output("call_1")]


def main() -> int:
    """Return 0 if every case has the status in the specification."""
    different = 0
    for name, observed, tools, conversation in cases():
        try:
            message = connect(*tools).ask(conversation).text
            status: int | None = 200
        except Problem as problem:
            message, status = str(problem), problem.status
        different += status != observed
        print(f"{name}: {status} (observed: {observed}) {message[:120]}")
    return 1 if different else 0


if __name__ == "__main__":
    run(main)
