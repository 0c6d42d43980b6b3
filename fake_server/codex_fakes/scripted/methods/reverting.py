"""The first turns of a thread: what a fork keeps of its source, and what a revert keeps of a thread (versions after 0.92)."""

from __future__ import annotations

from codex_fakes.scripted.methods.both import as_v2
from codex_fakes.scripted.methods.pages import last_cursors
from codex_fakes.scripted.state.ids import uuid7, uuid_error
from codex_fakes.scripted.state.refused import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Method, Session
    from codex_fakes.scripted.state.thread import Thread


def turns_kept(thread: Thread, last: str | None, before: str | None) -> int:
    """Return how many turns of a thread stay: up to the turn `last`, or those before the turn `before`; or all turns."""
    wanted = last if before is None else before
    if wanted is None:
        return len(thread.turns)
    for number, turn in enumerate(thread.turns):
        if "shown" in turn and turn["shown"]["id"] == wanted:
            return number + (before is None)
    raise Refused(f"turn not found: {wanted}")


def cut(thread: Thread, kept: int, items: int) -> None:
    """Remove the turns after the first `kept` ones from a thread; `items` is the end of its turns in the model's input."""
    thread.written = True
    if kept == len(thread.turns):
        return
    del thread.history[thread.turns[kept]["begins"] : items]
    del thread.turns[kept:]
    thread.total, thread.last = thread.turns[-1]["usage"] if thread.turns else (None, None)
    thread.unread = thread.unread if any(turn["shown"]["id"] == thread.unread for turn in thread.turns) else None
    thread.asked = thread.asked and bool(thread.turns)


def thread_revert(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/revert: remove a turn and all later turns from a thread.

    The real server unloads the thread, writes another file, and loads the thread again, even if the thread has no such turn.
    """
    if (error := uuid_error(params["threadId"])) is not None:
        raise Refused(f"invalid thread id: {error}")
    thread = session.thread(params["threadId"])
    if thread.ephemeral:
        raise Refused("ephemeral threads do not support thread/revert")
    thread.interrupt()
    for status in ("notLoaded", "idle"):
        session.send({"method": "thread/status/changed", "params": {"threadId": thread.id, "status": {"type": status}}})
    cut(thread, turns_kept(thread, None, params["beforeTurnId"]), len(thread.history))
    thread.created = thread.updated = session.now
    thread.file_suffix = f"_{uuid7(session.now)}"
    session.answer(request, {"thread": as_v2(session, thread), **last_cursors(session, thread)})
    session.send({"method": "thread/reverted", "params": {"threadId": thread.id}})


METHODS: dict[str, Method] = {"thread/revert": thread_revert}
