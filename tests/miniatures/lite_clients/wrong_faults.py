"""Clients that do not notice what breaks, or do not say it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from codex_replay.reference.lite_client import __main__ as program
from codex_replay.reference.lite_client import client, reply, settings, transport
from codex_replay.reference.lite_client.errors import Problem
from tests.miniatures.lite_clients.patching import Client, Reply, after, variant
from tests.miniatures.lite_clients.wrong_streams import trusts_deltas


@variant
def exit_0_on_error() -> None:
    """Says what went wrong, and exits with status 0."""
    after(program, "fail", lambda *_: 0)


@variant
def silent_failure() -> None:
    """Exits with status 1 without a word."""
    program.fail = lambda problem: 1


@variant
def errors_on_stdout() -> None:
    """Prints what went wrong on stdout."""

    def fail(problem: Problem) -> int:
        print(problem)
        return 1

    program.fail = fail


@variant
def falls_over() -> None:
    """Lets every error end in a traceback."""

    def fail(problem: Problem) -> int:
        raise problem

    program.fail = fail


@variant
def end_is_completed() -> None:
    """Takes the end of the stream for the end of the response."""

    def read(events: Any) -> Any:
        answer = Reply()
        for name, data in events:
            answer.feed(name, data)
            if answer.completed:
                break
        return answer

    reply.read = read


@variant
def cut_is_completed() -> None:
    """Takes a stream that is cut off for one that is over, and over for completed."""
    old = transport.Answer.chunks

    def chunks(self: Any) -> Any:
        try:
            yield from old(self)
        except Problem:
            return

    transport.Answer.chunks = chunks  # type: ignore[method-assign]
    end_is_completed()


@variant
def waits_for_ever() -> None:
    """Has no timeout."""
    old = settings.Settings.__init__

    def patient(self: settings.Settings, given: Mapping[str, str]) -> None:
        old(self, given)
        self.timeout = 10_000.0

    settings.Settings.__init__ = patient  # type: ignore[method-assign]


@variant
def falls_over_without_a_connection() -> None:
    """Does not expect that a connection fails."""

    def broken(url: str, error: Exception) -> Problem:
        raise error

    transport.broken = broken


@variant
def falls_over_at_bad_json() -> None:
    """Does not expect an event that is not JSON."""
    reply.decode = lambda data: json.loads(data)


@variant
def a_name_is_enough() -> None:
    """Ends at an event named response.completed without reading it."""
    old = Reply.feed

    def feed(self: Any, name: str, data: str) -> None:
        if name == "response.completed":
            self.completed = True
        else:
            old(self, name, data)

    Reply.feed = feed  # type: ignore[method-assign]
    half_a_text_is_a_text()


def half_a_text_is_a_text() -> None:
    Reply.text = property(lambda self: "".join(map("".join, self._pieces.values())))  # type: ignore[assignment]


@variant
def bad_json_is_the_end() -> None:
    """Takes an event that is not JSON for the end of the response."""
    old = Reply.feed

    def feed(self: Any, name: str, data: str) -> None:
        try:
            old(self, name, data)
        except Problem as problem:
            if "not JSON" not in str(problem):
                raise
            self.completed = True

    Reply.feed = feed  # type: ignore[method-assign]
    half_a_text_is_a_text()


@variant
def status_is_ignored() -> None:
    """Reads every answer as a stream, whatever its status."""
    client.refusal = lambda status, reason, body: Problem("The stream ended before response.completed.")


@variant
def error_bodies_are_json() -> None:
    """Falls over when an error answer is not JSON."""

    def refusal(status: int, reason: str, body: bytes) -> Problem:
        kind = client.Unauthorized if status == 401 else Problem
        return kind(f"{status} {json.loads(body)['error']['message']}")

    client.refusal = refusal


@variant
def ignores_failed() -> None:
    """Takes response.failed for the end of the response."""
    Reply.failed = lambda self, event: setattr(self, "completed", True)  # type: ignore[method-assign]
    half_a_text_is_a_text()


@variant
def failed_without_reason() -> None:
    """Does not say why a response failed."""

    def failed(self: Any, event: dict[str, Any]) -> None:
        raise Problem("The response did not succeed.")

    Reply.failed = failed  # type: ignore[method-assign]


@variant
def knows_its_codes() -> None:
    """Falls over at a code of response.failed that it does not know."""
    old = Reply.failed
    codes = dict.fromkeys(
        ("context_length_exceeded", "insufficient_quota", "rate_limit_exceeded", "server_error", "invalid_prompt")
    )

    def failed(self: Any, event: dict[str, Any]) -> None:
        codes[event["response"]["error"]["code"]]
        old(self, event)

    Reply.failed = failed  # type: ignore[method-assign]


@variant
def ignores_incomplete() -> None:
    """Takes response.incomplete for the end of the response."""
    Reply.incomplete = lambda self, event: setattr(self, "completed", True)  # type: ignore[method-assign]
    half_a_text_is_a_text()


@variant
def error_event_is_the_end() -> None:
    """Takes an `error` event for the end of the response."""
    old = Reply.feed

    def feed(self: Any, name: str, data: str) -> None:
        if name == "error":
            self.completed = True
        else:
            old(self, name, data)

    Reply.feed = feed  # type: ignore[method-assign]
    half_a_text_is_a_text()


@variant
def any_text_will_do() -> None:
    """Prints the text of an earlier response when a later one fails."""
    said: list[str] = []
    old = Client.ask

    def ask(self: Any, given: list[Any]) -> Any:
        try:
            answer = old(self, given)
        except Problem:
            if not said:
                raise
            answer = Reply()
            answer._items[0] = {"type": "message", "content": [{"type": "output_text", "text": said[-1]}]}
            return answer
        said.append(answer.text)
        return answer

    Client.ask = ask  # type: ignore[method-assign]


@variant
def needs_a_type() -> None:
    """Drops a text whose item came without a type, and says nothing."""
    old = Reply.feed

    def feed(self: Any, name: str, data: str) -> None:
        event = json.loads(data)
        if "type" not in event:
            self._pieces.clear()
            self._items.clear()
            self.lost = True
        elif not (getattr(self, "lost", False) and event["type"] == "response.output_item.done"):
            old(self, name, data)

    Reply.feed = feed  # type: ignore[method-assign]


@variant
def order_is_trusted() -> None:
    """Drops the deltas of an item that has not been added, and does not look at the finished item."""
    old = Reply.feed
    known: set[str] = set()

    def feed(self: Any, name: str, data: str) -> None:
        event = json.loads(data)
        if event.get("type") == "response.output_item.added":
            known.add(event["item"]["id"])
        if "delta" in event and event["item_id"] not in known:
            return
        old(self, name, data)

    Reply.feed = feed  # type: ignore[method-assign]
    trusts_deltas()
