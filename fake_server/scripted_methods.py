"""The methods of v2 that do something: threads and turns; in shapes and order as recorded.

One function a method, in a table; v1 has its own (`scripted_methods_v1`), and constant answers are data (answers.json).
"""

from __future__ import annotations

from fake_server.scripted_turn import Turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fake_server.scripted_session import Session
    from fake_server.scripted_thread import Thread

    Method = Callable[[Session, Any, dict[str, Any]], None]

INVALID_REQUEST = -32600
_INPUT_KINDS = ("text", "image", "localImage", "skill")


class Refused(Exception):
    """A request that gets an error; `code` and the text are what the client is told."""

    def __init__(self, message: str, code: int = INVALID_REQUEST) -> None:
        super().__init__(message)
        self.code = code


# -- v2: threads ----------------------------------------------------------------------------------------------------------


def _opened(thread: Thread, turns: bool = False) -> dict[str, Any]:
    settings = thread.settings
    return {
        "thread": thread.as_v2(turns),
        "model": settings.model,
        "modelProvider": settings.provider,
        "cwd": settings.cwd,
        "approvalPolicy": settings.policy,
        "sandbox": settings.sandbox,
        "reasoningEffort": settings.effort,
    }


def check_start(params: dict[str, Any]) -> None:
    """Refuse settings that there are not, and tools that lack a member."""
    for key, names in (
        ("approvalPolicy", ("untrusted", "on-failure", "on-request", "never")),
        ("sandbox", ("read-only", "workspace-write", "danger-full-access")),
    ):
        given = params.get(key)
        if given is not None and given not in names:
            raise Refused(f"Invalid request: unknown variant `{given}`, expected one of " + ", ".join(f"`{n}`" for n in names))
    for tool in params.get("dynamicTools") or []:
        for name in ("name", "description", "inputSchema"):
            if name not in tool:
                raise Refused(f"Invalid request: missing field `{name}`")


def thread_start(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Open a thread: the response, then its two notifications."""
    check_start(params)
    thread = session.new_thread(session.settings(params, "v2"))
    thread.dynamic_tools = params.get("dynamicTools") or []
    session.answer(request, _opened(thread))
    session.listen(thread, "v2")
    thread.emit("mcp-startup-complete")
    thread.emit("thread-started", {"threadObject": thread.as_v2()})


def thread_resume(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Load a thread again; it counts anew."""
    thread = stored(session, params["threadId"])
    thread.loaded = True
    thread.settings.change(params, "v2")
    thread.restart()
    session.answer(request, _opened(thread, turns=True))
    if not thread.listeners:
        session.listen(thread, "v2")
    thread.emit("mcp-startup-complete")


def thread_fork(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Make a thread with the history of another."""
    thread = copy(session, stored(session, params["threadId"]), params)
    session.answer(request, _opened(thread, turns=True))
    session.listen(thread, "v2")
    thread.emit("mcp-startup-complete")
    thread.emit("thread-started", {"threadObject": thread.as_v2(turns=True)})


def copy(session: Session, source: Thread, params: dict[str, Any]) -> Thread:
    """Make a thread with the history of another, and the settings of the request."""
    settings = source.settings.copy()
    settings.change(params, "v2")
    thread = session.new_thread(settings)
    thread.preview, thread.history, thread.turns = source.preview, list(source.history), list(source.turns)
    thread.total, thread.last, thread.dynamic_tools = source.total, source.last, source.dynamic_tools
    return thread


def stored(session: Session, text: str, word: str = "thread") -> Thread:
    """Find a thread that has something to be loaded from, loaded or not, but not archived."""
    from fake_server.scripted_ids import uuid_error

    error = uuid_error(text)
    if error is not None:
        raise Refused(f"invalid thread id: {error}")
    thread = session.threads.get(text.lower())
    if thread is None or thread.archived or not thread.preview:
        raise Refused(f"no rollout found for {word} id {text}")
    return thread


def thread_archive(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Put a thread away and unload it."""
    thread = stored(session, params["threadId"])
    archive(thread)
    session.answer(request, {})


def archive(thread: Thread) -> None:
    """Put a thread away: it ends, is unloaded and takes little room."""
    thread.interrupt()
    thread.archived, thread.loaded, thread.listeners = True, False, []
    thread.pack()


def thread_unarchive(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Take a thread back; it is not loaded by that."""
    thread = session.threads.get(params["threadId"])
    if thread is None or not thread.archived:
        raise Refused(f"no archived rollout found for thread id {params['threadId']}")
    thread.archived = False
    thread.unpack()
    session.answer(request, {"thread": thread.as_v2()})


def thread_read(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Show a loaded thread."""
    thread = session.thread(params["threadId"], missing="thread not loaded:")
    session.answer(request, {"thread": thread.as_v2(bool(params.get("includeTurns")))})


def thread_rollback(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Take the last turns back, out of what is shown and out of what the model is sent."""
    thread = session.thread(params["threadId"])
    thread.submit()
    for _ in range(min(params.get("numTurns") or 1, len(thread.turns))):
        thread.turns.pop()
        users = [i for i, item in enumerate(thread.history) if item.get("role") == "user"]
        if users:
            del thread.history[users[-1] :]
    session.answer(request, {"thread": thread.as_v2(turns=True)})


def thread_list(session: Session, request: Any, params: dict[str, Any]) -> None:
    """List the threads that have been spoken in, the latest first."""
    archived = bool(params.get("archived"))
    data = [thread.as_v2() for thread in spoken(session) if thread.archived == archived]
    data, cursor = page(data, params.get("limit"), params.get("cursor"))
    session.answer(request, {"data": data, "nextCursor": cursor})


def spoken(session: Session) -> list[Thread]:
    """Return the threads that have been spoken in, the latest first."""
    return [thread for thread in reversed(session.threads.values()) if thread.preview]


def page(data: list[Any], limit: Any, cursor: Any) -> tuple[list[Any], str | None]:
    """Return one page of a list, and the cursor of the next."""
    start = int(cursor) if isinstance(cursor, str) and cursor.isdecimal() else 0
    end = start + limit if isinstance(limit, int) and limit > 0 else len(data)
    return data[start:end], str(end) if end < len(data) else None


def thread_loaded_list(session: Session, request: Any, params: dict[str, Any]) -> None:
    """List the ids of the loaded threads."""
    data = [thread.id for thread in session.threads.values() if thread.loaded]
    data, cursor = page(data, params.get("limit"), params.get("cursor"))
    session.answer(request, {"data": data, "nextCursor": cursor})


# -- v2: turns --------------------------------------------------------------------------------------------------------------


def turn_start(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Start a turn, or steer the one that runs."""
    for item in params["input"]:
        if type(item) is not dict or item.get("type") not in _INPUT_KINDS:
            kind = item.get("type") if type(item) is dict else None
            names = ", ".join(f"`{name}`" for name in _INPUT_KINDS)
            raise Refused(f"Invalid request: unknown variant `{kind}`, expected one of {names}")
        need(item, {"text": "text", "image": "url", "localImage": "path"}.get(item["type"], "type"))
    thread = session.thread(params["threadId"])
    if thread.settings.change(params, "v2"):
        thread.submit()  # the overrides are a submission of their own
    turn = submit(session, thread, params["input"], params.get("outputSchema"))
    session.answer(request, {"turn": {"id": turn.id, "items": [], "status": "inProgress", "error": None}})
    if not params["input"]:
        # Nothing to do: the real server says no more than that it is done.
        shown = {"turn": turn.id, "lastMessage": None, "status": "completed", "error": None}
        thread.emit("task-complete", shown)
        return
    thread.emit("turn-started", {"turn": turn.id})
    begin(thread, turn, params["input"])


def need(item: dict[str, Any], name: str) -> None:
    """Refuse an item that lacks a member."""
    if name not in item:
        raise Refused(f"Invalid request: missing field `{name}`")


def submit(session: Session, thread: Thread, items: list[dict[str, Any]], schema: Any) -> Turn:
    """Make a turn of the user's input; it takes the next submission's number."""
    thread.updated = session.now
    return Turn(thread, session.model, session.table, items, schema)


def begin(thread: Thread, turn: Turn, items: list[dict[str, Any]]) -> None:
    """Start the turn, or give its input to the one that runs."""
    if thread.turn is not None:
        thread.steered.append(items)  # the turn that runs takes it with its next request
    else:
        thread.begin(turn)


def turn_interrupt(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Abort what runs, whatever turn is named; with nothing running there is no answer."""
    interrupt(session.thread(params["threadId"]), request, "v2")


def interrupt(thread: Thread, request: Any, api: str) -> None:
    """Abort what runs; the request is answered with the abort, and not before."""
    thread.submit()
    thread.interrupts.append((request, api))
    thread.interrupt()


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
    "turn/start": turn_start,
    "turn/interrupt": turn_interrupt,
}
