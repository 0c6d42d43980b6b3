"""The object behind the fixture `codex_backend`: a Responses backend for one test, and the record of its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codex_replay.plugin.base.ledger import Request, request_of

if TYPE_CHECKING:
    from codex_replay.protocol.recordings.conversation import Conversation
    from codex_replay.shell.http.backend_process import BackendSession


class CodexBackend:
    """A Responses backend for one test, with its own script, requests, tokens and gates.

    `url` is the prefix to give to a client: `{url}/v1` is an API base URL, `{url}/backend-api/codex` that of ChatGPT and
    `{url}/oauth/token` the token URL.
    """

    def __init__(self, session: BackendSession) -> None:
        self.lenient = False
        self.url = session.url
        self._session = session
        self._kept: list[Request] | None = None

    def script(self, script: object) -> None:
        """Set the script of the model; raises `BackendError` with a sentence for an invalid script."""
        self._session.script(script)

    @property
    def requests(self) -> list[Request]:
        """Every request so far, in order."""
        return self._kept if self._kept is not None else [request_of(entry, self.url) for entry in self._session.ledger()]

    @property
    def conversation(self) -> Conversation:
        """The requests so far and the statuses that they got, as frames: for `normalise`, `diff` and snapshots."""
        from codex_replay.protocol.recordings.conversation import http_conversation

        return http_conversation((one.payload, one.status) for one in self.requests)

    def close(self) -> None:
        """Stop it; its requests remain readable."""
        self._kept = self.requests
        self._session.close()

    def wait(self, count: int, seconds: float = 10.0) -> list[Request]:
        """Wait until so many requests have been answered; return all. Raises AssertionError on a timeout."""
        __tracebackhide__ = True
        found = [request_of(entry, self.url) for entry in self._session.ledger(count, seconds)]
        if len(found) < count:
            raise AssertionError(f"There were {len(found)} requests within {seconds:g} s, not {count}.")
        return found

    @property
    def unused_turns(self) -> list[int]:
        """The indexes of the script's turns that no request has used."""
        return self._session.unused_turns()

    @property
    def problems(self) -> list[str]:
        """A sentence for each request that a rule, an expectation or the script refused."""
        return self._session.problems()

    def wait_at_gate(self, gate: str, seconds: float = 10.0) -> bool:
        """Wait until an answer is at a gate; return whether one does."""
        return self._session.wait_at_gate(gate, seconds)

    def release(self, gate: str) -> None:
        """Open a gate."""
        self._session.release(gate)
