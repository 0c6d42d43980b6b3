"""The methods of the scripted fake that do something: threads, turns, listeners, in the words of v1 and of v2.

One function a method, in a table; the constant ones are data (answers.json). Shapes and order: recordings of the real binary.
"""

from __future__ import annotations

from fake_server.scripted_settings import rfc3339
from fake_server.scripted_turn import Turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fake_server.scripted_session import Session
    from fake_server.scripted_thread import Thread

_INPUT_KINDS = ("text", "image", "localImage", "skill")


def _refuse(message: str) -> Exception:
    from fake_server.scripted_session import Refused

    return Refused(message)


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


def _check_start(params: dict[str, Any]) -> None:
    for key, names in (
        ("approvalPolicy", ("untrusted", "on-failure", "on-request", "never")),
        ("sandbox", ("read-only", "workspace-write", "danger-full-access")),
    ):
        given = params.get(key)
        if given is not None and given not in names:
            raise _refuse(f"Invalid request: unknown variant `{given}`, expected one of " + ", ".join(f"`{n}`" for n in names))
    for tool in params.get("dynamicTools") or []:
        for name in ("name", "description", "inputSchema"):
            if name not in tool:
                raise _refuse(f"Invalid request: missing field `{name}`")


def thread_start(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Open a thread: the response, then its two notifications."""
    _check_start(params)
    thread = session.new_thread(session.settings(params, "v2"))
    thread.dynamic_tools = params.get("dynamicTools") or []
    session.answer(request, _opened(thread))
    session.listen(thread, "v2")
    thread.emit("mcp-startup-complete")
    thread.emit("thread-started", {"threadObject": thread.as_v2()})


def thread_resume(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Load a thread again; it counts anew."""
    thread = _stored(session, params["threadId"])
    thread.loaded = True
    thread.settings.change(params, "v2")
    thread.restart()
    session.answer(request, _opened(thread, turns=True))
    if not thread.listeners:
        session.listen(thread, "v2")
    thread.emit("mcp-startup-complete")


def thread_fork(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Make a thread with the history of another."""
    thread = _copy(session, _stored(session, params["threadId"]), params)
    session.answer(request, _opened(thread, turns=True))
    session.listen(thread, "v2")
    thread.emit("mcp-startup-complete")
    thread.emit("thread-started", {"threadObject": thread.as_v2(turns=True)})


def _copy(session: Session, source: Thread, params: dict[str, Any]) -> Thread:
    settings = source.settings.copy()
    settings.change(params, "v2")
    thread = session.new_thread(settings)
    thread.preview, thread.history, thread.turns = source.preview, list(source.history), list(source.turns)
    thread.total, thread.last, thread.dynamic_tools = source.total, source.last, source.dynamic_tools
    return thread


def _stored(session: Session, text: str, word: str = "thread") -> Thread:
    """Find a thread that has something to be loaded from, loaded or not, but not archived."""
    from fake_server.scripted_ids import uuid_error

    error = uuid_error(text)
    if error is not None:
        raise _refuse(f"invalid thread id: {error}")
    thread = session.threads.get(text.lower())
    if thread is None or thread.archived or not thread.preview:
        raise _refuse(f"no rollout found for {word} id {text}")
    return thread


def thread_archive(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Put a thread away and unload it."""
    thread = _stored(session, params["threadId"])
    _archive(thread)
    session.answer(request, {})


def _archive(thread: Thread) -> None:
    thread.interrupt()
    thread.archived, thread.loaded, thread.listeners = True, False, []
    thread.pack()


def thread_unarchive(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Take a thread back; it is not loaded by that."""
    thread = session.threads.get(params["threadId"])
    if thread is None or not thread.archived:
        raise _refuse(f"no archived rollout found for thread id {params['threadId']}")
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
    data = [thread.as_v2() for thread in _spoken(session) if thread.archived == archived]
    data, cursor = _page(data, params.get("limit"), params.get("cursor"))
    session.answer(request, {"data": data, "nextCursor": cursor})


def _spoken(session: Session) -> list[Thread]:
    return [thread for thread in reversed(session.threads.values()) if thread.preview]


def _page(data: list[Any], limit: Any, cursor: Any) -> tuple[list[Any], str | None]:
    start = int(cursor) if isinstance(cursor, str) and cursor.isdecimal() else 0
    end = start + limit if isinstance(limit, int) and limit > 0 else len(data)
    return data[start:end], str(end) if end < len(data) else None


def thread_loaded_list(session: Session, request: Any, params: dict[str, Any]) -> None:
    """List the ids of the loaded threads."""
    data = [thread.id for thread in session.threads.values() if thread.loaded]
    data, cursor = _page(data, params.get("limit"), params.get("cursor"))
    session.answer(request, {"data": data, "nextCursor": cursor})


# -- v2: turns --------------------------------------------------------------------------------------------------------------


def turn_start(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Start a turn, or steer the one that runs."""
    for item in params["input"]:
        if type(item) is not dict or item.get("type") not in _INPUT_KINDS:
            kind = item.get("type") if type(item) is dict else None
            names = ", ".join(f"`{name}`" for name in _INPUT_KINDS)
            raise _refuse(f"Invalid request: unknown variant `{kind}`, expected one of {names}")
        _need(item, {"text": "text", "image": "url", "localImage": "path"}.get(item["type"], "type"))
    thread = session.thread(params["threadId"])
    if thread.settings.change(params, "v2"):
        thread.submit()  # the overrides are a submission of their own
    turn = _submit(session, thread, params["input"], params.get("outputSchema"))
    session.answer(request, {"turn": {"id": turn.id, "items": [], "status": "inProgress", "error": None}})
    if not params["input"]:
        # Nothing to do: the real server says no more than that it is done.
        shown = {"turn": turn.id, "lastMessage": None, "status": "completed", "error": None}
        thread.emit("task-complete", shown)
        return
    thread.emit("turn-started", {"turn": turn.id})
    _begin(thread, turn, params["input"])


def _need(item: dict[str, Any], name: str) -> None:
    if name not in item:
        raise _refuse(f"Invalid request: missing field `{name}`")


def _submit(session: Session, thread: Thread, items: list[dict[str, Any]], schema: Any) -> Turn:
    thread.updated = session.now
    return Turn(thread, session.model, session.table, items, schema)


def _begin(thread: Thread, turn: Turn, items: list[dict[str, Any]]) -> None:
    if thread.turn is not None:
        thread.steered.append(items)  # the turn that runs takes it with its next request
    else:
        thread.begin(turn)


def turn_interrupt(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Abort what runs, whatever turn is named; with nothing running there is no answer."""
    _interrupt(session.thread(params["threadId"]), request, "v2")


def _interrupt(thread: Thread, request: Any, api: str) -> None:
    thread.submit()
    thread.interrupts.append((request, api))
    thread.interrupt()


# -- v1 ---------------------------------------------------------------------------------------------------------------------


def new_conversation(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Open a conversation; what happens in it waits for a listener."""
    _check_start(params)
    thread = session.new_thread(session.settings(params, "v1"))
    session.answer(request, _opened_v1(thread))
    thread.emit("mcp-startup-complete")


def _opened_v1(thread: Thread, messages: bool = False) -> dict[str, Any]:
    settings = thread.settings
    shown: dict[str, Any] = {"conversationId": thread.id, "model": settings.model}
    shown |= {"initialMessages": _messages(thread)} if messages else {"reasoningEffort": settings.effort}
    return {**shown, "rolloutPath": thread.path}


def _messages(thread: Thread) -> list[dict[str, Any]]:
    """Return what was said, as v1 repeats it to who resumes."""
    messages: list[dict[str, Any]] = []
    for turn in thread.turns:
        for item in turn["items"]:
            if item["type"] == "userMessage":
                text = "".join(part.get("text", "") for part in item["content"])
                empty: dict[str, Any] = {"images": [], "local_images": [], "text_elements": []}
                messages.append({"type": "user_message", "message": text, **empty})
            elif item["type"] == "agentMessage":
                messages.append({"type": "agent_message", "message": item["text"]})
    return messages


def resume_conversation(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Load a conversation again."""
    thread = _named_v1(session, params)
    thread.loaded = True
    thread.restart()
    session.answer(request, _opened_v1(thread, messages=True))
    thread.emit("mcp-startup-complete")


def fork_conversation(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Make a conversation with the history of another."""
    thread = _copy(session, _named_v1(session, params), {})
    session.answer(request, _opened_v1(thread, messages=True))
    thread.emit("mcp-startup-complete")


def _named_v1(session: Session, params: dict[str, Any]) -> Thread:
    path = params.get("rolloutPath") or params.get("path")
    if path is not None:
        for thread in session.threads.values():
            if thread.path == path:
                return thread
        raise _refuse(f"no rollout found at {path}")
    return _stored(session, params.get("conversationId") or "", "conversation")


def add_listener(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Attach a listener of v1; it gets what nobody has heard yet."""
    thread = session.thread(params["conversationId"], missing="thread not found:")
    from fake_server.scripted_ids import uuid4

    subscription = uuid4()
    session.answer(request, {"subscriptionId": subscription})
    thread.listen(subscription, "v1")


def remove_listener(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Detach a listener."""
    for thread in session.threads.values():
        for listener in thread.listeners:
            if listener[0] == params["subscriptionId"]:
                thread.listeners.remove(listener)
                session.answer(request, {})
                return
    raise _refuse(f"subscription not found: {params['subscriptionId']}")


def send_user_message(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Start a turn, or steer the one that runs; the answer comes first."""
    items = [_item_v2(item) for item in params["items"]]
    thread = session.thread(params["conversationId"], "v1")
    turn = _submit(session, thread, items, None)
    session.answer(request, {})
    _begin(thread, turn, items)


def send_user_turn(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Start a turn with settings of its own, which stay."""
    items = [_item_v2(item) for item in params["items"]]
    thread = session.thread(params["conversationId"], "v1")
    thread.settings.change(params, "v1")
    turn = _submit(session, thread, items, params.get("outputSchema"))
    session.answer(request, {})
    _begin(thread, turn, items)


def _item_v2(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item of v1 in v2's form; refused when it lacks `data`."""
    _need(item, "data")
    data = item["data"]
    if item.get("type") == "text":
        _need(data, "text")
        return {"type": "text", "text": data["text"], "text_elements": data.get("text_elements", [])}
    if item.get("type") == "image":
        return {"type": "image", "url": data.get("image_url") or data.get("imageUrl")}
    return {"type": "localImage", "path": data.get("path")}


def interrupt_conversation(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Abort what runs; with nothing running there is no answer."""
    _interrupt(session.thread(params["conversationId"], "v1"), request, "v1")


def archive_conversation(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Put a conversation away."""
    _archive(_stored(session, params["conversationId"], "conversation"))
    session.answer(request, {})


def conversation_summary(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Show a conversation in short."""
    session.answer(request, {"summary": _summary(_named_v1(session, params))})


def list_conversations(session: Session, request: Any, params: dict[str, Any]) -> None:
    """List the conversations that have been spoken in, the latest first."""
    items = [_summary(thread) for thread in _spoken(session) if not thread.archived]
    items, cursor = _page(items, params.get("pageSize"), params.get("cursor"))
    session.answer(request, {"items": items, "nextCursor": cursor})


def _summary(thread: Thread) -> dict[str, Any]:
    return {
        "conversationId": thread.id,
        "path": thread.path,
        "preview": thread.preview,
        "timestamp": rfc3339(thread.created, milliseconds=True),
        "updatedAt": rfc3339(thread.updated),
        "modelProvider": thread.settings.provider,
        "cwd": thread.settings.cwd,
        "cliVersion": "0.92.0",
        "source": "vscode",
        "gitInfo": None,
    }


def user_agent(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Repeat what initialize answered."""
    session.answer(request, {"userAgent": session.server.user_agent})


METHODS: dict[str, Callable[[Session, Any, dict[str, Any]], None]] = {
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
    "newConversation": new_conversation,
    "resumeConversation": resume_conversation,
    "forkConversation": fork_conversation,
    "addConversationListener": add_listener,
    "removeConversationListener": remove_listener,
    "sendUserMessage": send_user_message,
    "sendUserTurn": send_user_turn,
    "interruptConversation": interrupt_conversation,
    "archiveConversation": archive_conversation,
    "getConversationSummary": conversation_summary,
    "listConversations": list_conversations,
    "getUserAgent": user_agent,
}
