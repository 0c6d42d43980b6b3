"""WebSocket frames to the backend, good and damaged, compressed or not: it answers or closes, and fails at nothing."""

from __future__ import annotations

import json
from random import Random

from codex_replay.core.wire.websocket import Encoder, compression
from tests.fuzz.http_wire import BODY, exchange
from tests.fuzz.mutate import damaged, json_text
from tests.fuzz.targets import backend_requests

HEAD = (
    "GET /s/fuzz/v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-version: 13\r\n"
)
OFFER = "sec-websocket-extensions: permessage-deflate; client_max_window_bits\r\n"
SCRIPT = {"websocket": "on", "otherwise": "default"}
PIECES = (b"\x81", b"\x01", b"\x80", b"\x00", b"\x88", b"\x89", b"\xc1", b"\xff", b"\xfe\xff\xff", b"\x7f" + b"\xff" * 8)
CODES = (None, 0, 999, 1000, 1001, 1004, 1005, 1006, 1015, 2999, 3000, 5000, 65535)


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
        deflate = compression([("sec-websocket-extensions", "permessage-deflate")])[1] if packed else None
        encoder = Encoder(True, deflate)
        data = b"".join(frame(random, encoder) for _ in range(random.randint(1, 11)))
        if random.random() < 0.5:
            data = damaged(random, data, PIECES)
        return (HEAD + (OFFER if packed else "") + "\r\n").encode() + data

    def run(self, data: bytes) -> str | None:
        """Send them on a connection of their own."""
        answer = exchange(self.backend.url, data)
        if isinstance(answer, str):
            return answer
        if answer and not answer.startswith(b"HTTP/1.1 101 "):  # a reset, where bytes were left unread, may drop all of it
            return f"the handshake is not answered: {answer[:100]!r}"
        return f"it failed: {answer[-300:]!r}" if b"The backend itself failed" in answer else None


def frame(random: Random, encoder: Encoder) -> bytes:
    """Return one frame, or a message of several."""
    how = random.random()
    if how < 0.45:
        text = json_text(random, {"type": "response.create", **BODY})
        cuts = [random.randrange(len(text) + 1) for _ in range(random.choice((0, 0, 2, 5)))]
        return encoder.message("text", text, compressed=random.random() < 0.7, fragments=cuts)
    if how < 0.6:
        previous = random.choice(("resp_d1", "resp_p1_1", "", None, 5, "x" * 1000))
        body = {"type": "response.create", "model": "m", "input": [], "previous_response_id": previous}
        if random.random() < 0.5:
            body["generate"] = random.choice((False, True, None, 0))
        return encoder.message("text", json.dumps(body).encode())
    if how < 0.7:
        return encoder.message(random.choice(("ping", "pong")), random.randbytes(random.choice((0, 5, 125))))
    if how < 0.78:
        return encoder.message("binary", random.randbytes(50))
    if how < 0.84:
        return encoder.broken_deflate(random.randbytes(random.randint(0, 40)))
    if how < 0.9:
        return encoder.message("text", b"\0" * random.choice((100, 1_000_000)))
    if how < 0.94:
        return encoder.close(random.choice(CODES), random.randbytes(random.choice((0, 10))))
    return random.randbytes(random.randint(1, 20))
