"""The thread operations that v1 and v2 share: find, open, copy, list and archive a thread, and start a turn."""

from __future__ import annotations

from time import gmtime, strftime, strptime, time

from codex_fakes.scripted.state.ids import uuid_error
from codex_fakes.scripted.state.refused import Refused
from codex_fakes.scripted.state.settings import beginning
from codex_fakes.scripted.turns.request import given, is_prompt
from codex_fakes.scripted.turns.turn import Turn
from codex_replay.protocol.turn.frames import fill

_HEAD = 10  # the records of a file that 0.92.0 reads for the preview
_STAMP = "%Y-%m-%dT%H-%M-%S"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Session
    from codex_fakes.scripted.state.settings import Settings
    from codex_fakes.scripted.state.thread import Thread


def check_thread_id(text: str, word: str = "thread") -> None:
    """Raise `Refused` with the server's error message if a text is not a uuid; `word` is the message's word for a thread."""
    if (error := uuid_error(text)) is not None:
        raise Refused(f"invalid {word} id: {error}")


def stored(session: Session, text: str, word: str = "thread") -> Thread:
    """Find a stored thread that is not archived, whether it is loaded or not.

    A thread is stored even before its first message.
    """
    check_thread_id(text)
    thread = session.threads.get(text)
    if thread is None or thread.archived or thread.ephemeral:
        raise Refused(f"no rollout found for {word} id {text}")
    return thread


def begun(session: Session, thread: Thread, params: dict[str, Any]) -> None:
    """Send the notifications of a new thread: about deprecated or unstable settings, raw items, and the start of MCP servers."""
    notices(session, thread, params)
    thread.open_raw()
    thread.emit("mcp-startup-complete")


def notices(session: Session, thread: Thread, params: dict[str, Any]) -> None:
    """Send notifications about deprecated settings and unstable features."""
    config = thread.settings.config
    for key, notice in session.table["notices"].items():
        given: Any = config
        for name in key.split("."):
            given = given.get(name) if isinstance(given, dict) else None
        if key == "include_apply_patch_tool":
            given = params.get("includeApplyPatchTool")  # the same key of a configuration is not reported
        if given is not None:
            thread.emit("deprecated", notice)
    features = config.get("features") if not config.get("suppress_unstable_features_warning") else None
    unstable = [name for name in session.table["settings"]["unstable"] if isinstance(features, dict) and features.get(name)]
    if unstable:
        values = {"features": ", ".join(unstable), "home": session.home}
        thread.emit("warning", {"message": fill(session.table["sentences"]["unstable"], values)})


def settings_again(session: Session, thread: Thread, params: dict[str, Any], api: str) -> Settings:
    """Return the settings of a stored thread that is loaded a second time.

    The settings come from the configuration and from the new request. The thread keeps only two of its earlier settings: the
    directory and the base instructions.
    """
    settings = session.settings({**params, "cwd": params.get("cwd") or thread.cwd}, api)
    if settings.base_instructions is None:
        settings.base_instructions = thread.settings.base_instructions
    return settings


def load(session: Session, thread: Thread, params: dict[str, Any], api: str) -> Thread:
    """Load a thread a second time.

    The turn numbers of the thread restart, and only the stored part of the thread remains. If the request is refused,
    nothing changes. A running turn continues, but the loaded thread does not get its events.
    """
    settings = settings_again(session, thread, params, api)
    if session.store is not None:
        session.store.reload(thread)
    if thread.turn is not None:
        thread = session.leave(thread)
    take(session, thread, settings)
    return thread


def take(session: Session, thread: Thread, settings: Settings) -> None:
    """Load a stored thread with the given settings."""
    thread.settings, thread.loaded_with, thread.told = settings, settings.copy(), settings.model_view()
    thread.allowed = list(session.rules)
    thread.dynamic_tools, thread.approved, thread.limits = [], set(), None
    thread.loaded = True
    thread.restart()
    _open_compacted(thread)
    thread.open()


def _open_compacted(thread: Thread) -> None:
    """Replace the first items of a compacted history by items for the current settings of the thread."""
    if thread.lead:
        opening = beginning(thread.settings)
        thread.history[: thread.lead] = opening
        thread.lead = len(opening)


def loaded(session: Session, thread: Thread, fork: bool = False) -> None:
    """Send the notifications of a loaded thread: about its settings, about a changed model (not for a fork), the raw items, and
    the start of MCP servers.
    """
    notices(session, thread, {})
    if not fork and thread.model not in (None, thread.settings.model):
        values = {"old": thread.model, "new": thread.settings.model}
        message = fill(session.table["sentences"]["other-model"], values)
        thread.emit("warning", {"turn": "auto-compact-0", "message": message})  # its number, as of raw items before a turn
    thread.open_raw()
    thread.emit("mcp-startup-complete")


def copy(session: Session, source: Thread, settings: Settings) -> Thread:
    """Make a new thread with a copy of another thread's history."""
    thread = session.new_thread(settings)
    thread.preview, thread.history, thread.turns = source.preview, [*source.history, *thread.history], list(source.turns)
    thread.said = list(source.said)
    thread.asked, thread.before = source.asked, source.before + 1
    thread.total, thread.last, thread.window, thread.model = source.total, source.last, source.window, source.model
    thread.lead, thread.filed_under = source.lead, source.filed_under
    _open_compacted(thread)
    return thread


def remember(session: Session, settings: Settings, history: list[dict[str, Any]]) -> Thread:
    """Make a thread from a history that the client sends. A thread from a history shows no turns."""
    thread = session.new_thread(settings)
    kept = [item for item in history if thread.clock or item.get("role") != "system"]  # 0.92.0 drops messages of the system
    kept = given(kept)
    first = next((n for n, item in enumerate(kept) if is_prompt(item)), len(kept))
    thread.before += 0 if first == len(kept) else first  # without a message, the first turn counts all items
    thread.history = [*kept, *thread.history]
    thread.preview = "".join(part.get("text", "") for item in kept[first : first + 1] for part in item.get("content", []))
    return thread


def archive(thread: Thread) -> None:
    """Archive a thread: interrupt its turn and unload the thread, so that it uses little memory."""
    thread.interrupt()
    if thread.loaded:
        thread.emit("shutdown-complete", {"turn": thread.submit()})
    thread.archived, thread.loaded, thread.listeners = True, False, []
    thread.pack()


def submit(session: Session, thread: Thread, items: list[dict[str, Any]], schema: Any) -> Turn:
    """Make a turn from the user's input, with the number of the next submission."""
    thread.updated = time()
    return Turn(thread, session.model, session.table, items, schema)


def begin(
    thread: Thread, turn: Turn, items: list[dict[str, Any]], before: Settings | None = None, number: str | None = None
) -> None:
    """Start a turn, or pass its input to the running turn. `before` and `number` have the same meaning as in `told_of`."""
    told_of(thread, before, number, turn)
    if not items:
        thread.emit("task-complete", {"turn": turn.id, "lastMessage": None, "status": "completed", "error": None})
    elif thread.turn is not None:
        thread.steered.append(items)  # the turn that runs takes it with its next request
    else:
        thread.begin(turn)


def told_of(thread: Thread, before: Settings | None, number: str | None, turn: Turn) -> None:
    """Send raw items with the texts that report changed settings to the model.

    The raw items are sent after the request that changes the settings, and a second time in the next turn.

    `number` is the submission number of the request that changed the settings, if there was one. `before` are the settings
    before the change.
    """
    if number is not None and before is not None:
        thread.tell_changes(before.model_view(), number)
        thread.tell_mode(before, number)
    if thread.turn is None:  # a turn that is steered begins nothing
        thread.tell_changes(thread.told, turn.id)
        thread.told = thread.settings.model_view()


def interrupt(thread: Thread, request: Any, api: str) -> None:
    """Interrupt the running turn. The request for the interrupt is answered when the turn has ended."""
    thread.submit()
    thread.interrupts.append((request, api))
    thread.interrupt_soon()


def spoken(session: Session, providers: Any = None, sources: Any = None, *, unasked: bool = False) -> list[Thread]:
    """Return the stored threads with at least one message, the newest first.

    `providers` and `sources` select threads. Without `sources`, threads of `codex exec` are omitted; without `providers`,
    threads of providers other than that in config.toml are omitted. An empty list of providers selects the threads of all
    providers. With `unasked`, threads without a message are returned, too.
    """
    if providers is None:
        providers = [session.config.get("model_provider") or "openai"]
    wanted = sources or ("cli", "vscode")
    kept = [thread for thread in reversed(session.threads.values()) if (thread.asked or unasked) and not thread.ephemeral]
    kept = [thread for thread in kept if thread.clock or thread.before < _HEAD]  # without a preview, 0.92.0 does not list it
    kept = [thread for thread in kept if thread.source in wanted]
    return [thread for thread in kept if not providers or thread.filed_under in providers]


def listed(session: Session, params: dict[str, Any], size: Any, *, by_update: bool) -> tuple[list[Thread], str | None]:
    """Return one page of the threads that `spoken` returns, and the cursor of the next page.

    The threads are sorted by their start, or by the time of their last turn in whole seconds. The cursor is None if no further
    file follows. A file that `spoken` omits also counts, because the real server stops reading after a full page.
    """
    archived = bool(params.get("archived"))
    files = [each for each in reversed(session.threads.values()) if not each.ephemeral and each.archived == archived]
    if by_update:
        files.sort(key=lambda thread: int(thread.updated), reverse=True)
    wanted = {thread.id for thread in spoken(session, params.get("modelProviders"), params.get("sourceKinds"))}
    return page([thread for thread in files if thread.id in wanted], size, params.get("cursor"), stamp, files)


def page(
    data: list[Any], limit: Any, cursor: Any, named: Callable[[Any], str], files: list[Any] | None = None
) -> tuple[list[Any], str | None]:
    """Return one page of a list, and the cursor for the next page.

    The cursor is the name of the last entry on the page, or None if no further entry follows in `files` (default: in the
    list).
    """
    start = 0
    if cursor is not None:
        # The id decides: two threads may have the same second.
        names = [named(entry).rpartition("|")[2] for entry in data]
        if cursor.rpartition("|")[2] in names:
            start = names.index(cursor.rpartition("|")[2]) + 1
        elif is_stamp(cursor):
            start = next((n for n, entry in enumerate(data) if named(entry) < cursor), len(data))
        elif named is str and uuid_error(cursor) is None:
            start = next((n for n, entry in enumerate(data) if entry > cursor), len(data))
        else:
            raise Refused(f"invalid cursor: {cursor}")
    size = max(limit, 1) if isinstance(limit, int) else len(data)
    shown = data[start : start + size]
    more = size == len(shown) > 0 and shown[-1] is not (data if files is None or limit is None else files)[-1]
    return shown, named(shown[-1]) if more else None


def place(cursor: str | None, total: int, things: str) -> int:
    """Return the place in a list that a cursor names.

    The real server reads the cursor as a whole number of 64 bits, also with a `+` in front.
    """
    digits = "0" if cursor is None else cursor.removeprefix("+")
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits.lstrip("0")) <= 20 else 1 << 64
    if number >= 1 << 64:
        raise Refused(f"invalid cursor: {cursor}")
    if number > total:
        raise Refused(f"cursor {number} exceeds total {things} {total}")
    return number


def model_list(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle model/list: list the built-in models. The cursor is the number of models before the page."""
    known = session.answers["results"]["model/list"]["result"]["data"]
    data = [model for model in known if params.get("includeHidden") or not model.get("hidden")]
    cursor, limit = params.get("cursor"), params.get("limit")
    start = place(cursor, len(data), "models")
    end = min(start + max(limit, 1), len(data)) if isinstance(limit, int) else len(data)
    session.answer(request, {"data": data[start:end], "nextCursor": str(end) if end < len(data) else None})


def is_stamp(cursor: str) -> bool:
    """Return True if a cursor has the form of `stamp`. The thread that the cursor names need not exist any more."""
    time, _, thread = cursor.partition("|")
    try:
        exact = strftime(_STAMP, strptime(time, _STAMP)) == time
    except ValueError:
        return False
    return exact and uuid_error(thread) is None


def stamp(thread: Thread) -> str:
    """Return the cursor of a thread: its creation time in seconds, and its id."""
    return strftime(_STAMP, gmtime(thread.created)) + f"|{thread.id}"


def preview(thread: Thread) -> str:
    """Return the preview that 0.92.0 reads from the file of a thread. 0.92.0 reads only the first records of the file."""
    return "" if thread.ephemeral or thread.before >= _HEAD else thread.preview


def as_v2(session: Session, thread: Thread, turns: bool = False) -> dict[str, Any]:
    """Return the thread in the form of the v2 API, with its turns if `turns` is true."""
    if thread.clock:
        return _as_later(session, thread, turns)
    return {
        "id": thread.id,
        "preview": preview(thread),
        "modelProvider": thread.provider,
        "createdAt": int(thread.created),
        "updatedAt": int(thread.updated),
        "path": thread.path,
        "cwd": thread.cwd,
        "cliVersion": session.version,
        "source": thread.source,
        "gitInfo": thread.git,
        "turns": _turns_v2(thread) if turns else [],
    }


def _as_later(session: Session, thread: Thread, turns: bool) -> dict[str, Any]:
    state = (
        {"type": "active", "activeFlags": thread.flags}
        if thread.turn is not None
        else {"type": "systemError" if thread.failed else "idle"}
    )
    place = [{"environmentId": "local", "cwd": thread.cwd, "runtimeWorkspaceRoots": [thread.cwd]}]
    values = {
        **{name: getattr(thread, name) for name in ("id", "preview", "ephemeral", "path", "cwd", "name", "git")},
        "provider": thread.provider,
        "model": thread.settings.model if thread.loaded or thread.turns else None,
        "effort": thread.settings.effort if thread.loaded or thread.turns else None,
        "daybreak": thread.daybreak,
        "forkedFrom": thread.forked_from,
        "created": int(thread.created),
        "updated": int(thread.updated),
        "status": state if thread.loaded else {"type": "notLoaded"},
        "environments": place if thread.loaded else None,
        "accepts": True if thread.loaded else None,
        "version": session.version,
        "client": session.client_name,
        "turns": [turn["shown"] for turn in thread.turns if "shown" in turn] if turns else [],
    }
    shown: dict[str, Any] = fill(session.table["shapes"]["thread"], values)
    return shown


def _turns_v2(thread: Thread) -> list[dict[str, Any]]:
    shown, number = [], 0
    for count, turn in enumerate(thread.turns, 1):
        items = []
        for item in turn["items"]:
            number += 1
            items.append({"type": item["type"], "id": f"item-{number}", **{k: v for k, v in item.items() if k != "type"}})
        shown.append({"id": f"turn-{count}", "items": items, "status": turn["status"], "error": turn["error"]})
    return shown
