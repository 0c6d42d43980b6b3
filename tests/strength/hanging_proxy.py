"""The reference proxy, which hangs in the requests of one case: `python -m tests.strength.hanging_proxy WAY WORD`.

WORD is the word in the prompts of the case. WAY is `process` (the process stops, and serves no other request either) or
`answer` (the turn runs to its end, but the answer does not).
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from codex_replay.reference.proxy import __main__ as program
from codex_replay.reference.proxy.app import App

HOURS = 9000.0


def main(way: str, word: str) -> int:
    """Serve until the end."""
    handle = App.handle

    async def hang(*_: Any) -> None:
        if way == "process":
            time.sleep(HOURS)
        await asyncio.sleep(HOURS)

    async def handled(self: App, request: Any, answer: Any) -> None:
        if word.encode() in request.body:
            if way == "process":
                await hang()
            answer.send = answer.end = hang
        await handle(self, request, answer)

    App.handle = handled  # type: ignore[method-assign]
    return program.main([])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
