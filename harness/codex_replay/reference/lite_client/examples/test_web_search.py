"""An example with a web search, which the backend itself runs. The events of the search come before the text."""

from __future__ import annotations

import json
from collections.abc import Iterator

from codex_replay.reference.lite_client import sse, transport
from codex_replay.reference.lite_client.client import Client, user_message
from codex_replay.reference.lite_client.examples import WEB_SEARCH, connect, run


class Watching(Client):
    """A client that prints the progress of a search."""

    def events(self, answer: transport.Answer) -> Iterator[tuple[str, str]]:
        """Yield the events unchanged, and print the events of a search."""
        for name, data in sse.events(answer.chunks()):
            item = json.loads(data).get("item", {})
            if name.startswith("response.web_search_call."):
                print(name)
            elif item.get("type") == "web_search_call":
                print(f"{name}: {item.get('status')} {json.dumps(item.get('action', {}))}")
            yield name, data


def main() -> int:
    """Return 0 if the model searched and then answered."""
    plain = connect(WEB_SEARCH)
    client = Watching(plain.settings, plain.auth, plain.tools)
    answer = client.ask([user_message("Use web search to find out what the weather is in Oslo.")])
    print(answer.text)
    searched = any(item.get("type") == "web_search_call" for item in answer.items)
    return 0 if searched and answer.text else 1


if __name__ == "__main__":
    run(main)
