"""The methods of the v2 API without a constant answer: threads and turns.

The form and order of the frames are as in recordings. The module `v1` has the methods of the v1 API, and the module `both`
has shared functions. Constant answers are in answers.json.
"""

from __future__ import annotations

from codex_fakes.scripted.methods.both import (
    archive,
    as_v2,
    begin,
    begun,
    check_thread_id,
    copy,
    interrupt,
    listed,
    load,
    loaded,
    model_list,
    notices,
    page,
    remember,
    settings_again,
    stored,
    submit,
)
from codex_fakes.scripted.state import input_schema
from codex_fakes.scripted.state.refused import Refused
from codex_fakes.scripted.turns.estimate import context_tokens
from codex_fakes.scripted.turns.request import is_prompt
from codex_replay.protocol.turn.frames import usage_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Method, Session
    from codex_fakes.scripted.state.thread import Thread


# -- v2: threads ----------------------------------------------------------------------------------------------------------


def _opened(session: Session, thread: Thread, turns: bool = False) -> dict[str, Any]:
    settings = thread.settings
    return {
        "thread": as_v2(session, thread, turns),
        "model": settings.model,
        "modelProvider": settings.provider,
        "cwd": settings.cwd,
        "approvalPolicy": settings.policy,
        "sandbox": settings.sandbox,
        "reasoningEffort": settings.effort,
    }


def thread_start(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/start: open a thread, send the response, and then two notifications."""
    tools = params.get("dynamicTools") or []
    if (wrong := input_schema.refusal_of(tools)) is not None:
        raise Refused(wrong)
    thread = session.new_thread(session.settings(params, "v2"))
    thread.ephemeral = bool(params.get("ephemeral"))
    thread.dynamic_tools = tools
    session.answer(request, _opened(session, thread))
    session.listen(thread, "v2", bool(params.get("experimentalRawEvents")))
    begun(session, thread, params)
    thread.emit("thread-started", {"threadObject": as_v2(session, thread)})


def thread_resume(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/resume: load a thread a second time.

    After a second load, the turn numbers of the thread begin with 0. If the request has a history, the history becomes a
    new thread.
    """
    if params.get("history") is not None:
        from_elsewhere(session, request, params)
        return
    thread = _wanted(session, params)
    thread = load(session, thread, params, "v2")
    session.answer(request, _opened(session, thread, turns=True))
    if not thread.listeners:
        session.listen(thread, "v2")
    # A request for raw items ends when the thread is loaded again.
    thread.listeners = [(subscription, api, False) for subscription, api, _ in thread.listeners]
    loaded(session, thread)


def from_elsewhere(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Make a thread from the history in the request. A thread from a history shows no turns."""
    if not params["history"]:
        raise Refused("history must not be empty")
    thread = remember(session, session.settings(params, "v2"), params["history"])
    session.listen(thread, "v2")
    begun(session, thread, params)
    session.answer(request, _opened(session, thread))


def thread_fork(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Make a new thread with a copy of another thread's history."""
    source = _wanted(session, params)
    thread = copy(session, source, settings_again(session, source, params, "v2"))
    session.answer(request, _opened(session, thread, turns=True))
    session.listen(thread, "v2")
    notices(session, thread, {})
    thread.emit("mcp-startup-complete")
    thread.emit("thread-started", {"threadObject": as_v2(session, thread, turns=True)})


def _wanted(session: Session, params: dict[str, Any]) -> Thread:
    """Find the thread that a request names: by the path of its file if the request has a path, otherwise by its id."""
    path = params.get("path")
    if path is None:
        return stored(session, params["threadId"])
    for thread in session.threads.values():
        if thread.path == path:
            return stored(session, thread.id)
    raise Refused(f"failed to load rollout `{path}`: No such file or directory (os error 2)")


def thread_archive(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/archive: archive a thread and unload it."""
    thread = stored(session, params["threadId"])
    archive(thread)
    session.answer(request, {})


def thread_unarchive(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/unarchive, without loading the thread."""
    check_thread_id(params["threadId"])
    thread = session.threads.get(params["threadId"])
    if thread is None or not thread.archived:
        raise Refused(f"no archived rollout found for thread id {params['threadId']}")
    thread.archived = False
    thread.unpack()
    session.answer(request, {"thread": as_v2(session, thread)})


def thread_read(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Return a thread that is loaded or only stored (for example after `thread/unarchive`)."""
    kept = session.threads.get(params["threadId"])
    if kept is None or kept.loaded or kept.archived:
        kept = session.thread(params["threadId"], missing="thread not loaded:")
    thread = kept
    if thread.ephemeral and params.get("includeTurns"):
        raise Refused("ephemeral threads do not support includeTurns")
    session.answer(request, {"thread": as_v2(session, thread, bool(params.get("includeTurns")))})


def thread_rollback(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/rollback: remove the last turns from the list of turns and from the model's input.

    Estimate the number of tokens that remain in the context.
    """
    count = params["numTurns"]
    if type(count) is not int or count < 1:
        raise Refused("numTurns must be >= 1")
    thread = session.thread(params["threadId"])
    number = thread.submit()
    if thread.turn is not None:
        message = "Cannot rollback while a turn is in progress."
        thread.emit("rollback-failed", {"turn": number, "message": message})
        raise Refused(message)
    del thread.turns[-count:]
    users = [i for i, item in enumerate(thread.history) if is_prompt(item)]
    if users:
        del thread.history[users[max(len(users) - count, 0)] :]  # a history that the client gave has inputs without turns
    thread.set_estimate(context_tokens(thread, thread.settings), thread.settings.window())
    usage = usage_values(thread.total, thread.last, thread.window, thread.limits)
    thread.emit("usage", {"turn": number, **usage})
    thread.emit("thread-rolled-back", {"turn": number, "count": count})
    if thread.ephemeral:
        raise Refused("thread has no persisted rollout")  # it is rolled back all the same
    session.answer(request, {"thread": as_v2(session, thread, turns=True)})


def thread_list(session: Session, request: Any, params: dict[str, Any]) -> None:
    """List the threads with at least one message, the newest first."""
    shown, cursor = listed(session, params, params.get("limit"), by_update=params.get("sortKey") == "updated_at")
    session.answer(request, {"data": [as_v2(session, thread) for thread in shown], "nextCursor": cursor})


def thread_loaded_list(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Return the sorted ids of the loaded threads."""
    data = sorted(thread.id for thread in session.threads.values() if thread.loaded)
    data, cursor = page(data, params.get("limit"), params.get("cursor"), str) if data else ([], None)
    session.answer(request, {"data": data, "nextCursor": cursor})


# -- v2: turns --------------------------------------------------------------------------------------------------------------


def turn_start(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle turn/start: start a turn. If a turn is running, pass the input to the running turn."""
    thread = session.thread(params["threadId"])
    before = thread.settings
    thread.settings = before.copy()  # the turn that runs keeps its own
    number = thread.submit() if thread.settings.change(params, "v2") else None  # the overrides are a submission of their own
    turn = submit(session, thread, params["input"], params.get("outputSchema"))
    session.answer(request, {"turn": {"id": turn.id, "items": [], "status": "inProgress", "error": None}})
    if params["input"]:
        thread.announce("turn-started", {"turn": turn.id})
    begin(thread, turn, params["input"], before, number)
    if not params["input"]:
        thread.announce("turn-started", {"turn": turn.id})  # nothing to do: it is confirmed first


def turn_interrupt(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle turn/interrupt: interrupt the running turn, whatever turn id the request has.

    If no turn is running, send no response.
    """
    interrupt(session.thread(params["threadId"]), request, "v2")


METHODS: dict[str, Method] = {
    "thread/start": thread_start,
    "thread/resume": thread_resume,
    "thread/fork": thread_fork,
    "thread/archive": thread_archive,
    "thread/unarchive": thread_unarchive,
    "thread/read": thread_read,
    "thread/rollback": thread_rollback,
    "thread/list": thread_list,
    "thread/loaded/list": thread_loaded_list,
    "model/list": model_list,
    "turn/start": turn_start,
    "turn/interrupt": turn_interrupt,
}
