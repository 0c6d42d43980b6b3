"""An example with a function tool: the model calls the tool `add`, the script returns the sum, and the model answers."""

from __future__ import annotations

import json

from codex_replay.reference.lite_client.client import sent_back, user_message
from codex_replay.reference.lite_client.examples import ADD, connect, run
from codex_replay.reference.lite_client.tools import output_item


def main() -> int:
    """Return 0 if the model called `add` and then answered."""
    client = connect(ADD)
    conversation = [user_message("What is 2 + 3? Use the add tool.")]
    first = client.ask(conversation)
    if not first.calls:
        print(f"The model called no tool, but answered: {first.text}")
        return 1
    for call in first.calls:
        given = json.loads(call["arguments"])
        output = str(given["a"] + given["b"])
        print(f"{call['name']}({call['arguments']}) -> {output}")
        conversation += [sent_back(call) or call, output_item(call, output)]
    second = client.ask(conversation)
    print(second.text)
    return 0 if second.text else 1


if __name__ == "__main__":
    run(main)
