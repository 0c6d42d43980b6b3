"""WebSocket frames to the backend, good and damaged, compressed or not: it answers or closes, and fails at nothing."""

from __future__ import annotations

import json
from random import Random

from tests.fuzz.http_wire import BODY, exchange
from tests.fuzz.mutate import json_text
from tests.fuzz.targets import backend_requests
from tests.fuzz.ws_wire import frames, handshake

SCRIPT = {"websocket": "on", "otherwise": "default"}


class Target(backend_requests.Target):
    """A backend whose session grants WebSockets; a case has six frames on the average, so this is a run of 20,000."""

    total, share = 4000, 150

    def __enter__(self) -> Target:
        super().__enter__()
        self.backend.session("fuzz", SCRIPT)
        return self

    def case(self, random: Random) -> bytes:
        """Return a handshake and the frames after it."""
        packed = random.random() < 0.5
        head = handshake(random, "/s/fuzz/v1/responses", packed)
        return head + (frames(random, message, masked=True, packed=packed) if head.endswith(b"\r\n\r\n") else b"")

    def run(self, data: bytes) -> str | None:
        """Send them on a connection of their own."""
        answer = exchange(self.backend.url, data)
        if isinstance(answer, str):
            return answer
        whole = b"\r\n\r\n" in data
        if whole and answer and not answer.startswith(b"HTTP/1.1 101 "):  # a reset, where bytes were left unread, may drop all
            return f"the handshake is not answered: {answer[:100]!r}"
        return f"it failed: {answer[-300:]!r}" if b"The backend itself failed" in answer else None


def message(random: Random) -> bytes:
    """Return the text of a request, whole or not."""
    if random.random() < 0.75:
        return json_text(random, {"type": "response.create", **BODY})
    previous = random.choice(("resp_d1", "resp_p1", "", None, 5, "x" * 1000))
    body = {"type": "response.create", "model": "m", "input": [], "previous_response_id": previous}
    if random.random() < 0.5:
        body["generate"] = random.choice((False, True, None, 0))
    return json.dumps(body).encode()
