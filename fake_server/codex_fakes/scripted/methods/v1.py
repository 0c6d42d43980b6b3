"""The methods of the v1 API without a constant answer: conversations, listeners, messages.

The form and order of the frames are as in recordings. The module `v2` has the methods of the v2 API, and the module `both`
has shared functions.
"""

from __future__ import annotations

from codex_fakes.scripted.methods.both import (
    archive,
    begin,
    begun,
    copy,
    interrupt,
    listed,
    load,
    loaded,
    preview,
    remember,
    settings_again,
    stored,
    submit,
)
from codex_fakes.scripted.state.ids import uuid4, uuid_error
from codex_fakes.scripted.state.refused import Refused
from codex_fakes.scripted.state.settings import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Method, Session
    from codex_fakes.scripted.state.thread import Thread


def new_conversation(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Open a conversation, whose events wait until a listener is attached."""
    thread = session.new_thread(session.settings(params, "v1"))
    session.answer(request, _opened_v1(thread))
    begun(session, thread, params)


def _opened_v1(thread: Thread) -> dict[str, Any]:
    settings = thread.settings
    shown = {"conversationId": thread.id, "model": settings.model, "reasoningEffort": settings.effort}
    return {**shown, "rolloutPath": thread.path}


def resume_conversation(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Load a conversation again."""
    if params.get("history"):
        thread = remember(session, session.settings(params.get("overrides") or {}, "v1"), params["history"])
        _told_again(session, request, thread)
        return
    if params.get("path") is None and params.get("conversationId") is None:
        raise Refused("either path, conversation id or non empty history must be provided")
    thread = _named_v1(session, params)
    thread = load(session, thread, params.get("overrides") or {}, "v1")
    thread.listeners = []
    _told_again(session, request, thread)


def _told_again(session: Session, request: Any, thread: Thread, fork: bool = False) -> None:
    """Answer with the events of a conversation so far.

    The event sessionConfigured also contains the events of the conversation so far.
    """
    settings, path = thread.settings, thread.path
    about = {"sessionId": thread.id, "model": settings.model, "reasoningEffort": settings.effort}
    messages = {"initialMessages": list(thread.said), "rolloutPath": path}
    session.send({"method": "sessionConfigured", "params": {**about, "historyLogId": 0, "historyEntryCount": 0, **messages}})
    session.answer(request, {"conversationId": thread.id, "model": settings.model, **messages})
    loaded(session, thread, fork)


def fork_conversation(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Make a conversation with a copy of another conversation's history."""
    if params.get("path") is None and params.get("conversationId") is None:
        raise Refused("either path or conversation id must be provided")
    source = _named_v1(session, params)
    settings = settings_again(session, source, params.get("overrides") or {}, "v1")
    _told_again(session, request, copy(session, source, settings), fork=True)


def _named_v1(session: Session, params: dict[str, Any]) -> Thread:
    path = params.get("rolloutPath") or params.get("path")
    if path is not None:
        for thread in session.threads.values():
            if thread.path == path:
                return thread
        if "rolloutPath" in params:
            why = f"failed to load conversation summary from {path}: No such file or directory (os error 2)"
            raise Refused(why, code=-32603)
        raise Refused(f"failed to load rollout `{path}`: No such file or directory (os error 2)")
    return stored(session, params.get("conversationId") or "", "conversation")


def add_listener(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle addConversationListener: attach a v1 listener.

    The listener also gets the earlier frames that no listener has received.
    """
    thread = session.thread(params["conversationId"], "v1", missing="thread not found:")
    subscription = uuid4()
    session.answer(request, {"subscriptionId": subscription})
    thread.listen(subscription, "v1", bool(params.get("experimentalRawEvents")))


def remove_listener(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Detach a listener."""
    for thread in session.threads.values():
        for listener in thread.listeners:
            if listener[0] == params["subscriptionId"]:
                thread.listeners.remove(listener)
                session.answer(request, {})
                return
    raise Refused(f"subscription not found: {params['subscriptionId']}")


def send_user_message(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle sendUserMessage: start a turn, or pass the message to the running turn.

    The response is sent before the notifications.
    """
    items = [_item_v2(item) for item in params["items"]]
    thread = session.thread(params["conversationId"], "v1")
    turn = submit(session, thread, items, None)
    session.answer(request, {})
    begin(thread, turn, items)


def send_user_turn(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle sendUserTurn: start a turn with new settings. The settings also apply to later turns of the thread."""
    items = [_item_v2(item) for item in params["items"]]
    thread = session.thread(params["conversationId"], "v1")
    thread.settings = thread.settings.copy()  # the turn that runs keeps its own
    thread.settings.change(params, "v1")
    thread.settings.effort = params.get("effort")  # without one it is the model's own
    turn = submit(session, thread, items, params.get("outputSchema"))
    session.answer(request, {})
    begin(thread, turn, items)


def _item_v2(item: dict[str, Any]) -> dict[str, Any]:
    """Convert an item of the v1 API to the form of the v2 API."""
    data = item["data"]
    if item.get("type") == "text":
        return {"type": "text", "text": data["text"], "text_elements": data.get("text_elements", [])}
    if item.get("type") == "image":
        return {"type": "image", "url": data["image_url"]}
    return {"type": "localImage", "path": data["path"]}


def interrupt_conversation(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle interruptConversation: interrupt the running turn. If no turn is running, send no response."""
    interrupt(session.thread(params["conversationId"], "v1"), request, "v1")


def archive_conversation(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Archive a conversation."""
    path, name = params["rolloutPath"], params["conversationId"]
    if all(thread.ephemeral for thread in session.threads.values()):
        why = "unable to resolve sessions directory: No such file or directory (os error 2)"
        raise Refused(f"failed to archive thread: {why}", -32603)
    if path not in [thread.path for thread in session.threads.values() if not thread.archived and not thread.ephemeral]:
        raise Refused(f"rollout path `{path}` must be in sessions directory")  # also if no file is there
    if not path.endswith(f"-{name}.jsonl"):
        raise Refused(f"rollout path `{path}` does not match thread id {name}")
    archive(stored(session, name, "conversation"))
    session.answer(request, {})


def conversation_summary(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Answer with the summary of a conversation."""
    if type(params.get("rolloutPath")) is not str and (
        type(params.get("conversationId")) is not str or uuid_error(params["conversationId"]) is not None
    ):
        raise Refused("Invalid request: data did not match any variant of untagged enum GetConversationSummaryParams")
    session.answer(request, {"summary": _summary(session, _named_v1(session, params))})


def list_conversations(session: Session, request: Any, params: dict[str, Any]) -> None:
    """List the conversations with at least one message, the most recently used first."""
    only = {name: params.get(name) for name in ("modelProviders", "cursor")}
    items, cursor = listed(session, only, params.get("pageSize"), by_update=True)
    session.answer(request, {"items": [_summary(session, thread) for thread in items], "nextCursor": cursor})


def _summary(session: Session, thread: Thread) -> dict[str, Any]:
    return {
        "conversationId": thread.id,
        "path": thread.path,
        "preview": preview(thread),
        "timestamp": rfc3339(thread.created, milliseconds=True),
        "updatedAt": rfc3339(thread.updated),
        "modelProvider": thread.provider,
        "cwd": thread.cwd,
        "cliVersion": session.version,
        "source": thread.source,
        "gitInfo": None,
    }


def user_agent(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle getUserAgent: answer with the user agent of the answer to initialize."""
    session.answer(request, {"userAgent": session.server.user_agent})


METHODS: dict[str, Method] = {
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
