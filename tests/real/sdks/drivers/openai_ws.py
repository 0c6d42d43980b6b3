"""The same client as plain_ws.mjs, with the WebSocket client of the openai SDK."""

from __future__ import annotations

import json
import sys
from typing import Any

from openai import OpenAI  # type: ignore[import-not-found]


def main(url: str, messages: str) -> None:
    """Send the messages, and print the answers."""
    answers: list[dict[str, Any]] = []
    last = None
    client = OpenAI(api_key="key", base_url=url.replace("ws", "http", 1).removesuffix("/responses"))
    with client.responses.connect() as connection:
        for message in json.loads(messages):
            fields = json.loads(json.dumps(message).replace('"$last"', json.dumps(last)))
            steers = fields.pop("type") == "response.steer"
            (connection.response.steer if steers else connection.response.create)(**fields)
            types = []
            for event in connection:
                types.append(event.type)
                if event.type in ("error", "response.completed", "response.steer.failed"):
                    break
            if event.type == "error":
                answers.append({"types": types, "status": event.status, "code": event.error.code})
            elif steers:
                answers.append({"types": types, "code": event.error.code, "input": event.steer.input})
            else:
                last = event.response.id
                answers.append({"types": types, "text": event.response.output_text})
    print(json.dumps({"answers": answers}))


if __name__ == "__main__":
    main(*sys.argv[1:])
