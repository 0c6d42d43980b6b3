"""The same client as plain_ws.mjs, with Python's websockets."""

from __future__ import annotations

import json
import sys
from typing import Any

from websockets.sync.client import connect


def main(url: str, messages: str) -> None:
    """Send the messages, and print the answers."""
    answers: list[dict[str, Any]] = []
    last = None
    with connect(url, additional_headers={"authorization": "Bearer key"}) as socket:
        for message in json.loads(messages):
            socket.send(json.dumps(message).replace('"$last"', json.dumps(last)))
            types = []
            while not types or types[-1] not in ("error", "response.completed"):
                event = json.loads(socket.recv(20))
                types.append(event["type"])
            if types[-1] == "error":
                answers.append({"types": types, "status": event["status"], "code": event["error"]["code"]})
                continue
            last = event["response"]["id"]
            parts = [part["text"] for item in event["response"]["output"] for part in item.get("content", ())]
            answers.append({"types": types, "text": "".join(parts)})
        extensions = "permessage-deflate" if socket.protocol.extensions else ""
    print(json.dumps({"answers": answers, "code": socket.protocol.close_code, "extensions": extensions}))


if __name__ == "__main__":
    main(*sys.argv[1:])
