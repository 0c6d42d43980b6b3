"""Mutated bodies to each route of the backend: every one gets an HTTP answer, and none of them a 500."""

from __future__ import annotations

import json
from random import Random
from urllib.parse import urlencode

from codex_replay.shell.http.backend_process import PREFIX
from tests.fuzz.http_wire import BODY, REFRESH, SCRIPT, exchange
from tests.fuzz.mutate import json_text
from tests.fuzz.targets import backend_requests


class Target(backend_requests.Target):
    """The same backend, asked in good form."""

    total, share = 50_000, 1500

    def case(self, random: Random) -> bytes:
        """Return a whole request, without the token that the backend made for itself."""
        method, target, kind = "POST", "/v1/responses", "application/json"
        how = random.random()
        if how < 0.7:
            body = json_text(random, BODY)
            target = random.choice((target, "/s/fuzz/v1/responses", "/backend-api/codex/responses"))
        elif how < 0.8:
            target, body = "/oauth/token", json_text(random, REFRESH)
            if random.random() < 0.3:
                kind, body = "application/x-www-form-urlencoded", urlencode(REFRESH).encode()[: random.randrange(60)]
        elif how < 0.95:
            method, target, body = "PUT", PREFIX + "fuzz", json_text(random, SCRIPT)
        else:
            wanted = {"path": ["/nowhere"], "by": "content", "over": ["method"], "pace": "fast"}
            method, target, body = "PUT", PREFIX + "default/cassette", json_text(random, wanted)
        return json.dumps([method, target, kind]).encode() + b"\n" + body

    def run(self, data: bytes) -> str | None:
        """Ask, and expect an answer."""
        line, _, body = data.partition(b"\n")
        method, target, kind = json.loads(line)
        head = [f"{method} {target} HTTP/1.1", "host: localhost", f"content-type: {kind}", f"content-length: {len(body)}"]
        head += [f"x-codex-replay-token: {self.backend.token}", "authorization: Bearer x", "connection: close"]
        answer = exchange(self.backend.url, "\r\n".join([*head, "", ""]).encode() + body)
        if isinstance(answer, str):
            return answer
        if not answer.startswith(b"HTTP/1.1 "):
            return f"there is no HTTP answer to {method} {target}: {answer[:100]!r}"
        return f"it failed at {method} {target}: {answer[:300]!r}" if answer.startswith(b"HTTP/1.1 500 ") else None
