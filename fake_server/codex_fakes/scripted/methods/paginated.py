"""The methods of Codex versions after 0.92, whose threads have paginated histories, uuids as ids and a status.

Codex versions after 0.92 have no v1 API. Each method has one function, which answers as in recordings of 0.169.0. Functions
that 0.92 also uses are in the module `both`. Constant answers are in answers.json. A method without a function and without
a constant answer is refused as unknown.
"""

from __future__ import annotations

from codex_fakes.scripted.methods import later_settings, notes, pages
from codex_fakes.scripted.methods.both import as_v2, check_thread_id, copy, model_list, page, remember, stored, submit
from codex_fakes.scripted.methods.later_settings import (
    KEPT,
    KEPT_BY_FORKS,
    ignored_settings,
    need_model,
    report_settings,
    settings_of_old,
    shown_mode,
    shown_sandbox,
    warn_of_model,
    warn_of_settings,
)
from codex_fakes.scripted.state.refused import Refused
from codex_fakes.scripted.state.settings import absolute
from codex_fakes.scripted.turns.input import Input, preview_of
from codex_replay.protocol.turn.frames import error_v2, fill, usage_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Method, Session
    from codex_fakes.scripted.state.thread import Thread

#: How the methods begin that few clients call -> their module, which is loaded at the first call.
_SELDOM = {
    "fs/": "files", "account/": "account", "getAuthStatus": "account", "config/value/write": "config",
    "config/batchWrite": "config", "thread/compact/start": "review", "review/start": "review", "command/exec": "commands",
    "thread/backgroundTerminals/": "commands",
}  # fmt: skip
_METHOD_NOT_SUPPORTED, _INTERNAL = -32601, -32603


# -- threads ----------------------------------------------------------------------------------------------------------------


def _opened(session: Session, thread: Thread, turns: bool = False) -> dict[str, Any]:
    settings = thread.settings
    values = {
        **{name: getattr(settings, name) for name in ("model", "provider", "cwd", "policy", "effort")},
        "threadObject": as_v2(session, thread, turns),
        "sandbox": shown_sandbox(settings),
        "tier": settings.service_tier(),
    }
    opened: dict[str, Any] = fill(session.table["shapes"]["opened"], values)
    return opened


def thread_start(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/start: open a thread, send the response, and then the notification."""
    if params.get("permissions") is not None and params.get("sandbox") is not None:
        raise Refused("`permissions` cannot be combined with `sandbox`")
    tools = params.get("dynamicTools") or []
    if tools:
        from codex_fakes.scripted.state.input_schema import check

        check(tools, session.version)
    if params.get("projectId") is not None:
        raise Refused(fill(session.table["sentences"]["no-project"], {"project": params["projectId"]}))
    settings, ignored = session.settings(params, "v2"), ignored_settings(session, params)
    if ignored is not None:
        session.send({"method": "configWarning", "params": {"summary": ignored, "details": None}})
    thread = session.new_thread(need_model(session, settings))
    thread.ephemeral = bool(params.get("ephemeral"))
    thread.dynamic_tools = tools
    thread.reads = session.server.experimental
    session.answer(request, _opened(session, thread))
    session.listen(thread, "v2", bool(params.get("experimentalRawEvents")))
    warn_of_settings(session, thread, ignored)
    thread.emit("thread-started", {"threadObject": as_v2(session, thread)})


def thread_resume(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/resume: load a thread, and return its state.

    A thread that is already loaded stays unchanged. If the request has a history, the history becomes a new thread.
    """
    if params.get("history") is not None:
        _from_elsewhere(session, request, params)
        return
    check_thread_id(params["threadId"], "session")
    thread = _recorded(session, params["threadId"])
    was_unloaded = not thread.loaded
    if was_unloaded:
        thread.settings = settings_of_old(session, thread, params, KEPT)
        thread.loaded, thread.reads, thread.failed = True, session.server.experimental, False
        thread.open()
    if not thread.listeners:
        session.listen(thread, "v2")
    whole = _whole(session, params)
    if was_unloaded:
        warn_of_settings(session, thread, ignored_settings(session, params))
        warn_of_model(session, thread)
        _status(session, thread, "idle")
    answer = _resumed(session, thread, turns=whole)
    if params.get("initialTurnsPage") is not None:
        answer["initialTurnsPage"] = pages.turns_page(session, thread, params["initialTurnsPage"])
    session.answer(request, answer)
    if whole or was_unloaded:
        _usage(session, thread, from_file=was_unloaded)
    notes.report_goal(session, thread)
    session.ask_again(thread)


def _recorded(session: Session, text: str) -> Thread:
    """Find a thread that has had a turn, or that began with a history. The real server stores no other threads."""
    thread = session.threads.get(text)
    if thread is not None and thread.archived:
        raise Refused(f"session {thread.id} is archived. Run `codex unarchive {thread.id}` to unarchive it first.")
    thread = stored(session, text)
    if not (thread.turns or thread.given or thread.written):
        raise Refused(f"no rollout found for thread id {text}")
    return thread


def _from_elsewhere(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Make a thread from the history in the request, even if the request names a thread. The new thread shows no turns."""
    named = session.threads.get(params["threadId"])
    if named is not None and named.loaded:
        raise Refused(f"cannot resume thread {named.id} with history while it is already running")
    if not params["history"]:
        raise Refused("history must not be empty")
    thread = remember(session, need_model(session, session.settings(params, "v2")), params["history"])
    thread.reads, thread.preview = session.server.experimental, preview_of(params["history"])
    session.listen(thread, "v2")
    _status(session, thread, "idle")
    session.answer(request, _resumed(session, thread))
    thread.preview, thread.given = "", True  # only the response has the preview
    session.send({"method": "thread/goal/cleared", "params": {"threadId": thread.id}})


def _resumed(session: Session, thread: Thread, turns: bool = False) -> dict[str, Any]:
    """Return the response to thread/resume."""
    opened = _opened(session, thread, turns=turns)
    mode = opened.pop("multiAgentMode")
    opened |= {"collaborationMode": shown_mode(thread.settings), "multiAgentMode": mode, "initialTurnsPage": None}
    return {**opened, **pages.last_cursors(session, thread)}


def thread_fork(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Make a new thread with a copy of another thread's history."""
    check_thread_id(params["threadId"], "session")
    last, before = params.get("lastTurnId"), params.get("beforeTurnId")
    if last is not None and before is not None:
        raise Refused("`beforeTurnId` cannot be combined with `lastTurnId`")
    source = _recorded(session, params["threadId"])
    if params.get("ephemeral") and not params.get("excludeTurns"):
        raise Refused("ephemeral paginated thread/fork requires `excludeTurns: true`")
    whole = _whole(session, params)
    kept = notes.turns_kept(source, last, before)
    thread = copy(session, source, settings_of_old(session, source, params, KEPT_BY_FORKS))
    thread.forked_from, thread.reads, thread.name = source.id, source.reads, source.name
    notes.cut(thread, kept, len(source.history))
    thread.ephemeral = bool(params.get("ephemeral"))
    thread.preview = thread.preview if thread.turns or thread.given else ""
    session.listen(thread, "v2")
    warn_of_settings(session, thread, ignored_settings(session, params))
    session.answer(request, _opened(session, thread, turns=whole))
    if whole:
        _usage(session, thread, from_file=True)
    thread.emit("thread-started", {"threadObject": as_v2(session, thread)})


def _whole(session: Session, params: dict[str, Any]) -> bool:
    """Return True if the client requests all turns in the response.

    Requesting all turns is deprecated, and the fake sends a notification about the deprecation.
    """
    if params.get("excludeTurns"):
        return False
    _deprecated(session, "full-history")
    return True


def _deprecated(session: Session, name: str) -> None:
    session.send({"method": "deprecationNotice", "params": {"summary": session.table["sentences"][name], "details": None}})


def _usage(session: Session, thread: Thread, *, from_file: bool) -> None:
    """Report the token usage of a loaded thread, if the thread has any.

    If the server has just read the thread's file, the report names the last turn that counted tokens, otherwise the last turn.
    """
    if thread.total is None:
        return
    names = session.table["shapes"]["tokens"]
    values = usage_values(thread.total, thread.last, thread.settings.window(), None, names)
    turns = [turn for turn in thread.turns if "shown" in turn and "review" not in turn]
    named = turns[-1:]
    if turns and "before" in thread.turns[-1]:
        named = turns[:1]  # a compaction in the last turn: the first turn is named
    elif from_file:
        named = [turn for turn in turns if turn.get("counted")][-1:] or named
    thread.emit("usage", {"turn": named[0]["shown"]["id"] if named else "", **values})


def thread_read(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Return a thread, with its turns if the client requests them."""
    kept = session.threads.get(params["threadId"]) or session.thread(params["threadId"], missing="thread not loaded:")
    turns, written = bool(params.get("includeTurns")), bool(kept.turns or kept.given or kept.written)
    if turns and kept.ephemeral:
        raise Refused("ephemeral threads do not support includeTurns")
    if turns and not written:
        raise Refused("list_turns is not supported yet", _METHOD_NOT_SUPPORTED)
    if turns:
        _deprecated(session, "full-history-read")
    shown = as_v2(session, kept, turns)
    if kept.ephemeral:
        shown |= {"preview": "", "forkedFromId": None}
    session.answer(request, {"thread": shown, "readState": kept.read_state if written and not kept.ephemeral else None})


def thread_loaded_list(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Return the sorted ids of the loaded threads."""
    data = sorted(thread.id for thread in session.threads.values() if thread.loaded)
    data, cursor = page(data, params.get("limit"), params.get("cursor"), str)
    session.answer(request, {"data": data, "nextCursor": cursor})


def thread_archive(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/archive: archive a thread and unload it."""
    thread = stored(session, params["threadId"])
    thread.interrupt()
    thread.kill()
    if thread.loaded:
        _status(session, thread, "notLoaded")
    thread.archived, thread.loaded, thread.listeners, thread.written = True, False, [], True
    session.answer(request, {})
    session.send({"method": "thread/archived", "params": {"threadId": thread.id}})


def thread_unarchive(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/unarchive, without loading the thread."""
    check_thread_id(params["threadId"])
    thread = session.threads.get(params["threadId"])
    if thread is not None and thread.loaded and not thread.archived and not thread.ephemeral:
        raise Refused(f"thread {thread.id} already has an active writer")
    if thread is None or not thread.archived:
        raise Refused(f"no archived rollout found for thread id {params['threadId']}")
    thread.archived = False
    session.answer(request, {"thread": as_v2(session, thread)})
    session.send({"method": "thread/unarchived", "params": {"threadId": thread.id}})


def thread_name_set(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Give a thread a name, without the spaces around it."""
    check_thread_id(params["threadId"])
    thread, name = session.threads.get(params["threadId"]), params["name"].strip()
    if not name:
        raise Refused("thread name must not be empty")
    if thread is None or thread.archived:
        raise Refused(f"no rollout found for thread id {params['threadId']}")
    if thread.ephemeral:
        raise Refused(f"ephemeral thread does not support metadata updates: {thread.id}")
    thread.name, thread.written = name, True
    session.answer(request, {})
    session.send({"method": "thread/name/updated", "params": {"threadId": thread.id, "threadName": thread.name}})


def thread_unsubscribe(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Stop sending the notifications of a thread to the client. The thread stays loaded."""
    check_thread_id(params["threadId"])
    thread, status = session.threads.get(params["threadId"]), "notLoaded"
    if thread is not None and thread.loaded:
        thread.listeners, status = [], "unsubscribed" if thread.listeners else "notSubscribed"
    session.answer(request, {"status": status})


def _status(session: Session, thread: Thread, status: str) -> None:
    session.send({"method": "thread/status/changed", "params": {"threadId": thread.id, "status": {"type": status}}})


# -- turns ------------------------------------------------------------------------------------------------------------------


def turn_start(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle turn/start: start a turn. If a turn is running, pass the input to the running turn and return its id."""
    thread = session.thread(params["threadId"])
    _only_inline(params["input"])
    running = thread.turn
    if running is not None and running.kind != "turn":
        wrong = f"ActiveTurnNotSteerable {{ turn_kind: {running.kind.capitalize()} }}"
        raise Refused(f"failed to submit turn input: {wrong}", _INTERNAL)
    before, thread.settings = thread.settings, thread.settings.copy()  # the turn that runs keeps its own
    place = {} if params.get("cwd") is None else {"cwd": absolute(params["cwd"], session.cwd)}
    thread.settings.change({**params, **place}, "v2")
    thread.cwd = thread.settings.cwd
    report_settings(session, thread, before)
    given = Input(params["input"], params.get("clientUserMessageId"))
    turn = running or submit(session, thread, given, params.get("outputSchema"))
    if running is None:
        turn.warn_of_model()
    session.answer(request, {"turn": {**session.table["shapes"]["turn"], "id": turn.id, "rootTurnId": turn.id}})
    if running is not None:
        thread.steered.append(given)
        return
    thread.written = True
    thread.begin(turn)


def _only_inline(items: list[dict[str, Any]]) -> None:
    """Refuse images that are given as a URL on the web."""
    if any(item["type"] == "image" and item["url"].lower().startswith(("http://", "https://")) for item in items):
        raise Refused("remote image URLs are not supported; use an inline data URL instead")


def turn_steer(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Pass more input to the running turn."""
    thread, wanted = session.thread(params["threadId"]), params["expectedTurnId"]
    _only_inline(params["input"])
    if not wanted:
        raise Refused("expectedTurnId must not be empty")
    if thread.turn is None:
        raise Refused("no active turn to steer")
    if thread.turn.id != wanted:
        raise Refused(f"expected active turn id `{wanted}` but found `{thread.turn.id}`")
    if not params["input"]:
        raise Refused("input must not be empty")
    if (kind := thread.turn.kind) != "turn":
        text = f"cannot steer a {kind} turn"
        raise Refused(text, data=error_v2(session.table, text, {"active_turn_not_steerable": {"turn_kind": kind}}))
    session.answer(request, {"turnId": wanted})
    thread.steered.append(Input(params["input"], params.get("clientUserMessageId")))


def turn_interrupt(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle turn/interrupt: interrupt the running turn, if it has the given id.

    The request is answered when the turn has ended.
    """
    thread = session.thread(params["threadId"])
    if thread.turn is None or not thread.turn.begun:
        raise Refused("no active turn to interrupt")
    if thread.turn.shown_id != params["turnId"]:
        raise Refused(f"expected active turn id {params['turnId']} but found {thread.turn.shown_id}")
    thread.interrupts.append((request, "v2"))
    thread.interrupt()


def skills_list(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Return no skills, because the skills of the real Codex are files that its binary contains."""
    places = params.get("cwds") or [session.cwd]
    session.answer(request, {"data": [{"cwd": place, "skills": [], "errors": []} for place in places]})


def hooks_list(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Return no hooks, because the fake runs none."""
    places = params.get("cwds") or [session.cwd]
    session.answer(request, {"data": [{"cwd": place, "hooks": [], "warnings": [], "errors": []} for place in places]})


METHODS: dict[str, Method] = {
    "thread/start": thread_start,
    "thread/resume": thread_resume,
    "thread/fork": thread_fork,
    "thread/read": thread_read,
    "thread/loaded/list": thread_loaded_list,
    "thread/archive": thread_archive,
    "thread/unarchive": thread_unarchive,
    "thread/name/set": thread_name_set,
    "thread/unsubscribe": thread_unsubscribe,
    "turn/start": turn_start,
    "turn/steer": turn_steer,
    "turn/interrupt": turn_interrupt,
    "skills/list": skills_list,
    "hooks/list": hooks_list,
    "config/read": later_settings.read,
    "model/list": model_list,
    **notes.METHODS,
    **pages.METHODS,
}


def handler_of(method: str) -> Method | None:
    """Return the function that handles a method.

    Return None if the method has a constant answer (answers.json), or if the fake does not have the method.
    """
    name = next((name for start, name in _SELDOM.items() if method.startswith(start)), None)
    if name is None:
        return METHODS.get(method)
    from importlib import import_module

    found: Method | None = import_module(f"codex_fakes.scripted.methods.{name}").METHODS.get(method)
    return found
