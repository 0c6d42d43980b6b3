"""The lists of threads, turns and items of Codex versions after 0.92, page by page.

A cursor of turns or items is JSON, as in the real server, and names a place in the thread. The real server counts the lines
of the thread's file, and the fake counts the turns or the items.
"""

from __future__ import annotations

from time import strptime

from codex_fakes.scripted.methods.both import as_v2, check_thread_id, spoken
from codex_fakes.scripted.state.ids import uuid_error
from codex_fakes.scripted.state.refused import Refused
from codex_fakes.scripted.state.settings import absolute, rfc3339
from codex_replay.core.wire.json_text import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Method, Session
    from codex_fakes.scripted.state.thread import Thread

_SIZE = 25  # turns or items on a page, if the client names no limit
_MOST_IDS = 100  # of items/read
_METHOD_NOT_SUPPORTED, _INVALID_PARAMS = -32601, -32602
_ITEMS, _TURNS = "itemsByCreatedAtOrdinal", "turns"


# -- threads ----------------------------------------------------------------------------------------------------------------


def thread_list(session: Session, request: Any, params: dict[str, Any]) -> None:
    """List the threads that have messages, the newest first, each with its first unread turn."""
    _refuse_filters(params)
    by_time = params.get("sortKey") in ("updated_at", "recency_at")
    backwards = params.get("sortDirection") != "asc"
    kept = [(_place(thread, by_time), thread) for thread in _listable(session, params) if _fits(session, thread, params)]
    kept.sort(key=lambda entry: entry[0], reverse=backwards)
    if (cursor := params.get("cursor")) is not None:
        after = _read_place(cursor)
        kept = [entry for entry in kept if (entry[0] < after if backwards else entry[0] > after)]
    limit = params.get("limit")
    size = _SIZE if limit is None else max(limit, 1)
    shown = [thread for _, thread in kept[:size]]
    more = _named(*kept[size - 1][0]) if len(kept) > size else None
    listed = [{**as_v2(session, thread), "canAcceptDirectInput": None, "forkedFromId": None} for thread in shown]
    states = {thread.id: thread.read_state for thread in shown}
    first = _place(shown[0], by_time)[0] if shown else None
    session.answer(request, {"data": listed, "readStates": states, "nextCursor": more, "backwardsCursor": first})


def _place(thread: Thread, by_time: bool) -> tuple[str, str]:
    """Return the place of a thread in a list: the time when it began, in seconds, or of its last turn; and its id."""
    return rfc3339(thread.updated if by_time else int(thread.created), milliseconds=True), thread.id


def _named(time: str, thread: str) -> str:
    """Return the cursor of a place in a list."""
    return f"{time.removesuffix('.000Z').removesuffix('Z')}Z|{thread}"


def _read_place(cursor: str) -> tuple[str, str]:
    """Return the place that a cursor names: a time, or a time and the id of a thread."""
    time, _, thread = cursor.partition("|")
    seconds, _, fraction = time.removesuffix("Z").partition(".")
    try:
        strptime(seconds, "%Y-%m-%dT%H:%M:%S")
        if not time.endswith("Z") or not (fraction or "0").isdigit() or (thread and uuid_error(thread) is not None):
            raise ValueError(cursor)
    except ValueError:
        raise Refused(f"invalid cursor: {cursor}") from None
    return f"{seconds}.{fraction[:3].ljust(3, '0')}Z", thread


def _listable(session: Session, params: dict[str, Any]) -> list[Thread]:
    """Return the threads that have messages, or of the archived ones also those without a message, the newest first."""
    archived = bool(params.get("archived"))
    kept = spoken(session, params.get("modelProviders"), params.get("sourceKinds"), unasked=archived)
    return [thread for thread in kept if thread.archived == archived]


def _refuse_filters(params: dict[str, Any]) -> None:
    for each in params.get("excludedThreadIds") or ():
        if (error := uuid_error(each)) is not None:
            raise Refused(f"invalid excluded thread id: {error}", _INVALID_PARAMS)
    if params.get("originators"):
        raise Refused("originator filtering is not supported by the local app-server", _INVALID_PARAMS)
    if params.get("projectId") is not None:
        raise Refused(f"project not found: {params['projectId']}", _INVALID_PARAMS)
    if params.get("sortKey") == "section_position" and params.get("sectionId") is None:
        raise Refused("section-position sorting requires a section filter")


def _fits(session: Session, thread: Thread, params: dict[str, Any]) -> bool:
    """Return True if a thread has the words and the directory that a request names, and is not excluded."""
    if any(params.get(name) is not None for name in ("parentThreadId", "ancestorThreadId", "sectionId", "attachedToThreadId")):
        return False  # the fake has no agents and no sections
    words, places = params.get("searchTerm"), params.get("cwd")
    if words is not None and words not in thread.preview and words not in (thread.name or ""):
        return False
    if places is not None:
        wanted = [places] if isinstance(places, str) else places
        if thread.cwd not in [absolute(place, session.cwd) for place in wanted]:
            return False
    return thread.id not in [each.lower() for each in params.get("excludedThreadIds") or ()]


# -- turns and items --------------------------------------------------------------------------------------------------------


def _paged(session: Session, params: dict[str, Any], missing: str, code: int) -> Thread:
    check_thread_id(params["threadId"])
    thread = session.threads.get(params["threadId"])
    if thread is None:
        raise Refused(missing, code)
    return thread


def turns_of(session: Session, thread: Thread) -> list[dict[str, Any]]:
    """Return the turns of a thread, as `thread/read` shows them; the last one may be running."""
    return [turn["shown"] for turn in thread.turns if "shown" in turn] + _running_turn(session, thread)


def _running_turn(session: Session, thread: Thread) -> list[dict[str, Any]]:
    """Return the running turn of a thread with its completed items, or nothing if no turn runs."""
    if thread.turn is None or not thread.turns or "shown" in thread.turns[-1]:
        return []
    shown, ids = thread.turns[-1], {"id": thread.turn.id, "rootTurnId": thread.turn.id}
    turn = {**session.table["shapes"]["turn"], **ids, "startedAt": shown["startedAt"], "items": shown.get("full", [])}
    return [{**turn, "itemsView": "full"}]


def _with_items(session: Session, params: dict[str, Any], method: str) -> Thread:
    """Find a thread that the real server has stored; the others have no items."""
    unsupported = f"{method} is not supported yet"
    thread = _paged(session, params, unsupported, _METHOD_NOT_SUPPORTED)
    if thread.ephemeral or not (thread.turns or thread.written):
        raise Refused(unsupported, _METHOD_NOT_SUPPORTED)
    return thread


def items_list(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/items/list: return the items of a thread or of one of its turns, the oldest first."""
    wanted, cursor = params.get("turnId"), params.get("cursor")
    if isinstance(cursor, dict) and wanted is None:
        raise Refused("turnId is required when cursor is an item anchor", _INVALID_PARAMS)
    thread = _with_items(session, params, "thread/items/list")
    entries = _entries(session, thread)
    kept = [(place, entry) for place, entry in enumerate(entries) if wanted in (None, entry["turnId"])]
    if isinstance(cursor, dict):
        place = next((place for place, entry in kept if entry["item"]["id"] == cursor["itemId"]), None)
        if place is None:
            text = "cursor.itemId does not identify an item in the requested history scope"
            raise Refused(text, _INVALID_PARAMS)
        cursor = _cursor(thread, place, _ITEMS, anchored=False)
    session.answer(request, _page(thread, kept, {**params, "cursor": cursor}, _ITEMS, newest_first=False))


def _entries(session: Session, thread: Thread) -> list[dict[str, Any]]:
    entries = [
        {"turnId": turn["id"], "item": item, "startedAtMs": item["startedAtMs"], "completedAtMs": item["completedAtMs"]}
        for turn in turns_of(session, thread)
        for item in turn["items"]
    ]
    return sorted(entries, key=lambda entry: entry["completedAtMs"])  # a command may end after its turn


def items_read(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/items/read: return the items of a turn with the given ids; unknown ids are left out."""
    if not 1 <= len(params["itemIds"]) <= _MOST_IDS:
        raise Refused(f"itemIds must contain 1 to {_MOST_IDS} IDs")
    thread, wanted = _with_items(session, params, "thread/items/read"), params["itemIds"]
    data = [e for e in _entries(session, thread) if e["turnId"] == params["turnId"] and e["item"]["id"] in wanted]
    session.answer(request, {"data": data})


def turns_list(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/turns/list: return the turns of a thread, the newest first."""
    thread = _paged(session, params, f"thread not loaded: {params['threadId']}", -32600)
    if thread.ephemeral:
        raise Refused("ephemeral threads do not support thread/turns/list")
    if not (thread.turns or thread.written or thread.given):
        text = f"thread {thread.id} is not materialized yet; thread/turns/list is unavailable before first user message"
        raise Refused(text)
    session.answer(request, turns_page(session, thread, params))


def turns_page(session: Session, thread: Thread, params: dict[str, Any]) -> dict[str, Any]:
    """Return one page of the turns of a thread, with the cursors to the pages before and after."""
    view = params.get("itemsView") or "summary"
    turns = list(enumerate(_viewed(turn, view) for turn in turns_of(session, thread)))
    return _page(thread, turns, params, _TURNS, newest_first=True)


def _viewed(turn: dict[str, Any], view: str) -> dict[str, Any]:
    """Return a turn with all items, with the first message of the user and the last of the agent, or without items."""
    items = turn["items"]
    if view == "summary":
        asked = [item for item in items if item["type"] == "userMessage"][:1]
        items = asked + [item for item in items if item["type"] == "agentMessage"][-1:]
    return {**turn, "items": items if view != "notLoaded" else [], "itemsView": view}


def last_cursors(session: Session, thread: Thread) -> dict[str, str | None]:
    """Return the cursors that begin at the last turn and at the last item of a thread, or null."""
    turns, items = len(turns_of(session, thread)), len(_entries(session, thread))
    return {
        "turnsBackwardsCursor": _cursor(thread, turns - 1, _TURNS, anchored=True) if turns else None,
        "itemsBackwardsCursor": _cursor(thread, items - 1, _ITEMS, anchored=True) if items else None,
    }


def _cursor(thread: Thread, place: int, kind: str, *, anchored: bool) -> str:
    """Return a cursor to a place in a thread. With `anchored`, the page has the entry at the place, too."""
    value = {"requestedThreadId": thread.id, "rolloutOrdinal": place, "includeAnchor": anchored, "scope": {"kind": kind}}
    return dumps(value).decode()


def _page(
    thread: Thread, entries: list[tuple[int, dict[str, Any]]], params: dict[str, Any], kind: str, *, newest_first: bool
) -> dict[str, Any]:
    """Return one page of numbered entries, and its cursors."""
    backwards = params["sortDirection"] == "desc" if params.get("sortDirection") is not None else newest_first
    cursor, limit = params.get("cursor"), params.get("limit")
    if backwards:
        entries = entries[::-1]
    if cursor is not None:
        anchor, anchored = _read_cursor(thread, cursor, kind)
        entries = [
            (place, entry)
            for place, entry in entries
            if (place < anchor if backwards else place > anchor) or (anchored and place == anchor)
        ]
    size = _SIZE if limit is None else max(limit, 1)
    shown = entries[:size]
    more = _cursor(thread, shown[-1][0], kind, anchored=False) if len(entries) > size else None
    first = _cursor(thread, shown[0][0], kind, anchored=True) if shown else None
    return {"data": [entry for _, entry in shown], "nextCursor": more, "backwardsCursor": first}


def _read_cursor(thread: Thread, cursor: str, kind: str) -> tuple[int, bool]:
    """Return the place that a cursor names, and whether the page has the entry at the place."""
    try:
        value = loads(cursor.encode())
        if value["requestedThreadId"] == thread.id and value["scope"]["kind"] == kind:
            return int(value["rolloutOrdinal"]), bool(value["includeAnchor"])
    except (ValueError, TypeError, KeyError):
        pass
    raise Refused(f"invalid cursor: {cursor}")


METHODS: dict[str, Method] = {
    "thread/list": thread_list,
    "thread/items/list": items_list,
    "thread/items/read": items_read,
    "thread/turns/list": turns_list,
}
