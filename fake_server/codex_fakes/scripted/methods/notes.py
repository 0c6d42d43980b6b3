"""What a client changes of a stored thread, in Codex versions after 0.92: its goal, its git metadata, and its turns.

A goal that is active makes the real server begin turns of its own, which the fake does not do (docs/fake-codex.md).
"""

from __future__ import annotations

from time import time

from codex_fakes.scripted.methods.both import as_v2, check_thread_id
from codex_fakes.scripted.methods.pages import last_cursors
from codex_fakes.scripted.state.ids import uuid7
from codex_fakes.scripted.state.refused import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Method, Session
    from codex_fakes.scripted.state.thread import Thread

_LONGEST = 4000  # characters of an objective


def _with_goal(session: Session, params: dict[str, Any]) -> Thread:
    thread = session.thread(params["threadId"])
    if thread.ephemeral:
        raise Refused(f"ephemeral thread does not support goals: {thread.id}")
    return thread


def goal_get(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/goal/get: return the goal of a thread, or null."""
    session.answer(request, {"goal": _with_goal(session, params).goal})


def goal_set(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/goal/set: set a goal, or change members of the goal that the thread has."""
    thread, now = _with_goal(session, params), int(time())
    objective, budget, status = (params.get(name) for name in ("objective", "tokenBudget", "status"))
    if objective is not None and not objective.strip():
        raise Refused("goal objective must not be empty")
    if objective is not None and len(objective.strip()) > _LONGEST:
        raise Refused(f"goal objective must be at most {_LONGEST} characters")
    if budget is not None and budget <= 0:
        raise Refused("goal budgets must be positive when provided")
    if thread.goal is None and objective is None:
        raise Refused(f"cannot update goal for thread {thread.id}: no goal exists")
    goal = thread.goal or {
        "threadId": thread.id,
        "objective": "",
        "status": "active",
        "tokenBudget": None,
        "tokensUsed": 0,
        "timeUsedSeconds": 0,
        "createdAt": now,
        "updatedAt": now,
    }
    if goal["status"] == "budgetLimited" and status in ("paused", "blocked"):
        status = None  # a goal whose budget is used stays so
    given = {"objective": objective if objective is None else objective.strip(), "status": status}
    goal = {**goal, **{name: value for name, value in given.items() if value is not None}, "updatedAt": now}
    if "tokenBudget" in params:
        goal["tokenBudget"] = budget
    thread.goal = goal
    session.answer(request, {"goal": goal})
    report_goal(session, thread)


def goal_clear(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/goal/clear: remove the goal of a thread, if the thread has one."""
    thread = _with_goal(session, params)
    cleared, thread.goal = thread.goal is not None, None
    session.answer(request, {"cleared": cleared})
    if cleared:
        report_goal(session, thread)


def report_goal(session: Session, thread: Thread) -> None:
    """Send the goal of a thread to the client, or that the thread has none."""
    named = {"threadId": thread.id}
    if thread.goal is None:
        session.send({"method": "thread/goal/cleared", "params": named})
    else:
        session.send({"method": "thread/goal/updated", "params": {**named, "turnId": None, "goal": thread.goal}})


def metadata_update(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/metadata/update: change the git metadata that a thread shows; null removes a value."""
    check_thread_id(params["threadId"])
    thread = session.threads.get(params["threadId"])
    if thread is None:
        raise Refused(f"no rollout found for thread id {params['threadId']}")
    if thread.ephemeral:
        raise Refused(f"ephemeral thread does not support metadata updates: {thread.id}")
    git, daybreak, project = params.get("gitInfo"), params.get("daybreakEnabled"), params.get("projectId")
    if git is None and daybreak is None and project is None:
        raise Refused("thread metadata update must include at least one field")
    if project is not None:
        raise Refused(f"project not found: {project}")
    if git is not None:
        given = {name: git[name] for name in ("originUrl", "sha", "branch") if name in git}
        if not given:
            raise Refused("gitInfo must include at least one field")
        for name, value in given.items():
            if value is not None and not value.strip():
                raise Refused(f"gitInfo.{name} must not be empty")
        changed = {"sha": None, "branch": None, "originUrl": None, **(thread.git or {})}
        changed |= {name: value if value is None else value.strip() for name, value in given.items()}
        thread.git = changed if any(value is not None for value in changed.values()) else None
    if daybreak is not None:
        thread.daybreak = daybreak
    thread.written = True
    session.answer(request, {"thread": {**as_v2(session, thread), "canAcceptDirectInput": None}})


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
    """Remove the turns after the first `kept` ones from a thread; `items` is the end of its turns in the model's input.

    If one of these turns compacted the history, the history from before its compaction comes back.
    """
    thread.written = True
    if kept == len(thread.turns):
        return
    whole = next((turn["before"] for turn in thread.turns[kept:] if "before" in turn), thread.history)
    thread.history[:] = [*whole[: thread.turns[kept]["begins"]], *thread.history[items:]]
    del thread.turns[kept:]
    thread.total, thread.last = thread.turns[-1]["usage"] if thread.turns else (None, None)
    thread.unread = thread.unread if any(turn["shown"]["id"] == thread.unread for turn in thread.turns) else None
    thread.asked = thread.asked and bool(thread.turns)


def thread_revert(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/revert: remove a turn and all later turns from a thread.

    The real server unloads the thread, writes another file, and loads the thread again, even if the thread has no such turn.
    """
    check_thread_id(params["threadId"])
    thread = session.thread(params["threadId"])
    if thread.ephemeral:
        raise Refused("ephemeral threads do not support thread/revert")
    thread.interrupt()
    for status in ("notLoaded", "idle"):
        session.send({"method": "thread/status/changed", "params": {"threadId": thread.id, "status": {"type": status}}})
    cut(thread, turns_kept(thread, None, params["beforeTurnId"]), len(thread.history))
    thread.created = thread.updated = time()
    thread.file_suffix = f"_{uuid7(time())}"
    session.answer(request, {"thread": as_v2(session, thread), **last_cursors(session, thread)})
    session.send({"method": "thread/reverted", "params": {"threadId": thread.id}})


METHODS: dict[str, Method] = {
    "thread/goal/get": goal_get,
    "thread/goal/set": goal_set,
    "thread/goal/clear": goal_clear,
    "thread/metadata/update": metadata_update,
    "thread/revert": thread_revert,
}
