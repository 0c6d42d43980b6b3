"""Compaction: when the context is nearly full, the model summarises the context, and the summary replaces the history.

The real server compacts before the first request of a turn, and between two requests; after 0.92, also when the client asks
for it. In 0.92, the client gets no item for a compaction, only the token counts, `context_compacted` and a warning. Later
versions report an item and no warning, and the turn ends if the model fails. The order and the texts of the frames are those
of the real binary.
"""

from __future__ import annotations

from codex_fakes.scripted.state.settings import beginning
from codex_fakes.scripted.state.waits import Gate, Pause, Sleep
from codex_fakes.scripted.turns.estimate import context_tokens, used_tokens
from codex_fakes.scripted.turns.input import joined_text
from codex_fakes.scripted.turns.request import answered, body_of, is_own, message
from codex_replay.protocol.turn.frames import add_usage, failure
from codex_replay.protocol.turn.stream import Sampling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any, Protocol

    from codex_fakes.scripted.state.model import Model
    from codex_fakes.scripted.state.protocols import Turn as AnyTurn
    from codex_fakes.scripted.state.settings import Settings
    from codex_fakes.scripted.state.thread import Thread

    Run = Generator[Any, None, None]

    class Turn(AnyTurn, Protocol):
        """The interface of the turn in which the history is compacted."""

        model: Model
        table: dict[str, Any]

        @property
        def thread(self) -> Thread:
            """Return its thread."""

        def take_limits(self, given: dict[str, Any]) -> None:
            """Store the rate limits of an answer."""

        def report_usage(self) -> None:
            """Report the token counts."""

        def reconnecting(self, failed: dict[str, Any], n: int, limit: int) -> None:
            """Report to the client that the stream of the model is requested again."""

        def fail(self, failed: dict[str, Any], ends: bool = True) -> None:
            """Report an error."""


_USER_TOKENS = 20_000  # of the user's messages that are kept, the latest first


def is_full(turn: Turn) -> bool:
    """Return True if the context must be compacted before the next request; a review does not compact it."""
    limit = turn.settings.compaction_limit() if turn.kind == "turn" else None
    return limit is not None and used_tokens(turn.thread) >= limit


def old_model(turn: Turn) -> Settings | None:
    """Return the settings with the model of the latest turn, if the new model cannot read what that model compacts.

    The change of the model compacts the context, with the old model. In 0.92, each model can read the context of each other.
    """
    old = turn.settings.copy()
    old.model = turn.thread.model or old.model
    kinds = [settings.abilities().get("compaction") for settings in (old, turn.settings)]
    return old if None not in kinds and kinds[0] != kinds[1] else None


def compact(turn: Turn, old: Settings | None = None) -> Generator[Any, None, dict[str, Any] | None]:
    """Replace the history by a summary of the model. If the model fails, the history stays unchanged.

    `old` are other settings for the request. Return the failure, or None. In 0.92, the turn continues after a failure, which is
    reported here.
    """
    thread, settings, item = turn.thread, old or turn.settings, turn.thread.item_id()
    thread.emit("compaction-started", {"item": item})
    prompt = message("user", "input_text", settings.compact_prompt or turn.sentence("compact-prompt"))
    before, trimmed, retried = list(thread.history), 0, 0
    requests, streams = settings.retries()
    requested = 0
    while True:
        body = {**body_of(thread, settings, None, turn.kind), "input": [*answered(before), prompt]}
        body |= {"tools": [], "parallel_tool_calls": False}
        reply = turn.model.ask(body, {"thread": thread.id, "turn": turn.id}, settings.url())
        yield from thread.out.gap("model")
        for what, how in reply.before:
            yield Sleep(how / 1000) if what == "wait" else Gate(thread.steered, len(thread.steered))
        sampling = Sampling(turn.table["model"], turn.table.get("searches"))
        if reply.failure is None:
            turn.take_limits(reply.limits)
            if thread.clock:
                turn.report_usage()
            yield from _read(turn, reply.acts, sampling)
            if sampling.end is not None and "completed" in sampling.end:
                break
        cause = reply.failure or {"url": settings.url(), **(sampling.end or {})}
        failed = failure(turn.table["errors"], {"text": "", **cause})
        if "request" in failed["retry"] and requested < requests:
            requested += 1
        elif failed.get("full") and _trim(before):
            trimmed, retried = trimmed + 1, 0
        elif not failed.get("full") and retried < streams and ("stream" in failed["retry"] or not thread.clock):
            retried += 1
            turn.reconnecting(failed, retried, streams)
            yield Pause()
        else:
            if not thread.clock:
                turn.fail(failed, ends=False)
            return failed
    if sampling.usage is not None:
        thread.set_usage(add_usage(thread.total, sampling.usage), sampling.usage, settings.window())
    turn.report_usage()
    if trimmed and not thread.clock:
        thread.emit("background", {"message": turn.sentence("compact-trimmed", count=trimmed)})
    _replace(turn)
    thread.set_estimate(context_tokens(thread, settings), settings.window())
    turn.report_usage()
    thread.emit("context-compacted", {"item": item})
    if not thread.clock:
        thread.emit("warning", {"message": turn.sentence("compacted")})
    return None


def _read(turn: Turn, acts: list[Any], sampling: Sampling) -> Run:
    """Read a reply without reporting its items."""
    thread = turn.thread
    done = 0
    for act in acts:
        if type(act) is not tuple:
            sampling.receive(act)
            thread.history += [item for item in sampling.history[done:] if item["type"] != "other"]
            done = len(sampling.history)
            if sampling.end is not None:
                break
            continue
        what, how = act
        if what == "end":
            if how == "idle":
                yield Sleep(turn.settings.idle_seconds())
            sampling.close(how)
            break
        yield Sleep(how / 1000) if what == "wait" else Gate(thread.steered, len(thread.steered))
    sampling.close()
    if thread.clock and sampling.end is not None and "completed" in sampling.end:
        thread.raw(*sampling.items)
        thread.raw_response(sampling.response, sampling.usage)


def _trim(items: list[dict[str, Any]]) -> bool:
    """Remove the oldest item of the history.

    Return False if only one item is left. An unsent item that opens a thread counts as two items, because it represents two
    texts of the real server.
    """
    if len(items) < 2:
        return False
    if items[0]["type"] == "unsent" and items[0]["opens"]:
        items[0] = {**items[0], "opens": False}
    else:
        del items[0]
    return True


def _replace(turn: Turn) -> None:
    """Replace the history by the thread's first items, the user's messages and the summary."""
    thread = turn.thread
    if thread.turns:
        thread.turns[-1].setdefault("before", list(thread.history))  # a cut before this turn restores it
    last = next((item for item in reversed(thread.history) if item.get("role") == "assistant"), None)
    text = "".join(part.get("text", "") for part in last["content"]) if last is not None else ""
    users, left = [], _USER_TOKENS
    for item in reversed([item for item in thread.history if item.get("role") == "user"]):
        words = joined_text(item["content"])
        if is_own(item["content"]):  # of these, the real server keeps the notes of interrupts
            words = "\n".join(part["text"] for part in item["content"] if part.get("text"))
            if not words.lstrip().lower().startswith("<turn_aborted>"):
                continue
        if words.startswith(turn.sentence("compact-summary", text="").rstrip("\n")):
            continue
        left -= (len(words.encode("utf-8", "surrogatepass")) + 3) // 4
        if left < 0:
            break
        users.append(message("user", "input_text", words))
    opening = beginning(turn.settings)
    summary = message("user", "input_text", turn.sentence("compact-summary", text=text))
    thread.history[:] = [*opening, *reversed(users), summary]
    thread.lead = len(opening)
