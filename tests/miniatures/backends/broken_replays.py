"""Backends that replay recordings wrongly in one way each: `python broken_replays.py NAME [options]`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from codex_fakes.backend import server
from codex_fakes.backend.replay import http, replay
from codex_replay.core.cassette import http_frames
from codex_replay.core.replay import http_match, match

VARIANTS: dict[str, Callable[[], None]] = {}


def variant(patch: Callable[[], None]) -> Callable[[], None]:
    """Enter a patch into the table under its own name."""
    VARIANTS[patch.__name__.replace("_", "-")] = patch
    return patch


def pieces(change: Callable[[list[tuple[float, bytes]]], list[tuple[float, bytes]]]) -> None:
    """Change the pieces of every body."""
    old = http._spliced
    http._spliced = lambda found, bindings: change(old(found, bindings))


@variant
def joins_chunks() -> None:
    """Sends each body as one chunk."""
    pieces(lambda found: [(found[-1][0], b"".join(raw for _, raw in found))] if found else [])


@variant
def tidies_events() -> None:
    """Writes events anew, with usual line ends and without comments."""
    pieces(lambda found: [(t, raw.replace(b"\r\n", b"\n")) for t, raw in found if not raw.startswith(b":")])


@variant
def loses_the_last_piece() -> None:
    """Leaves the last piece of a body out."""
    pieces(lambda found: found[:-1])


@variant
def lower_case_headers() -> None:
    """Writes the names of headers in lower case."""
    old = http_frames.response_head
    http_frames.response_head = lambda payload: old({**payload, "headers": [[name.lower(), v] for name, v in payload["headers"]]})


def _ends(how: str, instead: str) -> None:
    old = http._finish

    async def finish(exchange: Any, one: Any, head: Any, chunked: bool) -> str:
        if one.close is not None and one.close.payload == how and one.close.sender == "server":
            one.close.payload = instead
        return await old(exchange, one, head, chunked)

    http._finish = finish


@variant
def cuts_end_well() -> None:
    """Ends a stream that was cut as if it were whole."""
    _ends("cut", "end")


@variant
def resets_are_cuts() -> None:
    """Closes in good order what was reset."""
    _ends("reset", "cut")


@variant
def first_come() -> None:
    """Gives the next recorded answer, whatever is asked."""
    http_match.HttpPlayer._differences = lambda self, one, live: []


@variant
def nothing_is_consumed() -> None:
    """Plays an exchange again and again."""
    old = http_match.HttpPlayer.use

    def use(self: Any, conn: int, one: Any, payload: Any) -> None:
        old(self, conn, one, payload)
        one.used = False

    http_match.HttpPlayer.use = use


@variant
def masks_nothing() -> None:
    """Compares what changes from run to run as it stands."""
    match.Matcher.differences = lambda self, a, b: [] if a == b else [match.Difference("body", "one", "other")]


@variant
def binds_nothing() -> None:
    """Does not put live ids into the answers."""
    match.Bindings.apply = lambda self, raw: raw


@variant
def knows_no_rules() -> None:
    """Answers what breaks a rule."""
    replay.Replay.violation = lambda self, one, asked, off: None


@variant
def takes_any_secret_for_none() -> None:
    """Does not redact the live request before it compares."""
    http_match._Live.plain = lambda self: self.view


@variant
def misses_are_defaults() -> None:
    """Gives the default reply where no recording answers."""
    old = replay.Replay.answer

    async def answer(self: Any, exchange: Any, entry: Any, tokens: Any, off: Any, path: str, query: str) -> Any:
        unanswered = await old(self, exchange, entry, tokens, off, path, query)
        if unanswered is not None and unanswered.rule == "miss":
            exchange.respond(200, [], b"{}")
            return None
        return unanswered

    replay.Replay.answer = answer


@variant
def mixes_conversations() -> None:
    """Gives a conversation the next answer of any other."""
    http_match.HttpPlayer._of_conversation = lambda self, agreeing, payload: next(agreeing, None)


@variant
def forgets_terminals() -> None:
    """Sends the recorded number of a terminal."""
    http_match.terminals = lambda recorded, live: iter(())


@variant
def holds_nothing() -> None:
    """Sends what is held at once."""
    old = replay.Pace.__init__
    replay.Pace.__init__ = lambda self, speed, held: old(self, speed, {})


def main(argv: list[str]) -> int:
    """Run the variant that the first argument names."""
    VARIANTS[argv[0]]()
    return server.main(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
