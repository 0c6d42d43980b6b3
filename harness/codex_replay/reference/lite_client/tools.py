"""Read a file with the tools that a prompt may use: their declarations, and the result of each call.

docs/lite-client.md describes the format of the file. An example of the file:

    {"tools": [...],
     "results": [{"name": "add", "arguments": {"a": 2, "b": 3}, "output": "5"}, {"name": "mul", "error": "mul failed"}]}
"""

from __future__ import annotations

import time

from codex_replay.reference.json_text import loads
from codex_replay.reference.lite_client.errors import Problem
from codex_replay.reference.lite_client.settings import read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Item = dict[str, Any]

#: type of a call -> the type of the item that answers it.
OUTPUTS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}


class Tools:
    """The declarations of tools, which are sent as they are in the file, and the prepared results of calls."""

    def __init__(self, path: str | None) -> None:
        document = {} if path is None else read_json(path, "The tools file")
        if not isinstance(document, dict) or not all(isinstance(document.get(key, []), list) for key in ("tools", "results")):
            raise Problem(f'The tools file {path} must be an object with the lists "tools" and "results".')
        self.specs: list[Any] = document.get("tools", [])
        self.results: list[Item] = document.get("results", [])

    def outputs(self, calls: list[Item]) -> list[Item]:
        """Run the model's tool calls in parallel. Return an output item for each call, in the order in which the calls finish."""
        if len(calls) == 1:
            return [output_item(calls[0], self.call(calls[0]))]
        from concurrent.futures import ThreadPoolExecutor, as_completed  # late: most prompts need no threads

        with ThreadPoolExecutor(max(1, len(calls))) as pool:
            running = {pool.submit(self.call, call): call for call in calls}
            return [output_item(running[done], done.result()) for done in as_completed(running)]

    def call(self, call: Item) -> str:
        """Return the output of a tool call as plain text. If the call failed, the text begins with `err: `."""
        given: Any = call.get("input")
        if call.get("type") == "function_call":
            try:
                given = loads(str(call.get("arguments", "")))
            except ValueError as error:
                return failure(f"the arguments are not JSON: {error}")
        result = self.find(str(call.get("name")), given)
        if result is None:
            return failure(f"unsupported call: {call.get('name')}")
        time.sleep(float(result.get("delay_ms", 0)) / 1000)
        return failure(str(result["error"])) if "error" in result else str(result.get("output", ""))

    def find(self, name: str, given: object) -> Item | None:
        """Return the first prepared result for the tool `name` and the arguments (or input) of the call.

        A prepared result without arguments matches every call of the tool.
        """
        for result in self.results:
            if result.get("name") == name and result.get("arguments", given) == given and result.get("input", given) == given:
                return result
        return None


def failure(what: str) -> str:
    """Return the output of a tool that failed."""
    return f"err: {what}"


def output_item(call: Item, output: str) -> Item:
    """Return the input item that contains the output of a call."""
    return {"type": OUTPUTS[call["type"]], "call_id": call.get("call_id"), "output": output}
