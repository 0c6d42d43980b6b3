"""The thread operations that v1 and v2 share: find, open, copy, list and archive a thread, and start a turn."""

from __future__ import annotations

from time import gmtime, strftime

from codex_fakes.scripted.state.ids import uuid_error
from codex_fakes.scripted.state.refused import Refused
from codex_fakes.scripted.turns.turn import Turn
from codex_replay.protocol.turn.frames import fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Session
    from codex_fakes.scripted.state.settings import Settings
    from codex_fakes.scripted.state.thread import Thread


def stored(session: Session, text: str, word: str = "thread") -> Thread:
    """Find a thread that is kept, loaded or not, but not archived; it is kept even before its first message."""
    error = uuid_error(text)
    if error is not None:
        raise Refused(f"invalid thread id: {error}")
    thread = session.threads.get(text.lower())
    if thread is None or thread.archived or thread.ephemeral:
        raise Refused(f"no rollout found for {word} id {text}")
    return thread


def begun(session: Session, thread: Thread, params: dict[str, Any]) -> None:
    """Send the notifications of a new thread: deprecated or unstable settings, raw items, MCP's start."""
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
    thread.open_raw()
    thread.emit("mcp-startup-complete")


def settings_again(session: Session, thread: Thread, params: dict[str, Any], api: str) -> Settings:
    """Return the settings of a stored thread that is loaded again.

    They come from the configuration and from this request, not from the earlier settings of the thread. Only the directory and
    the base instructions of the thread are kept.
    """
    settings = session.settings({**params, "cwd": params.get("cwd") or thread.cwd}, api)
    if settings.base_instructions is None:
        settings.base_instructions = thread.settings.base_instructions
    return settings


def load(session: Session, thread: Thread, params: dict[str, Any], api: str) -> Thread:
    """Load a thread again: its count restarts, and only the kept part remains; on a refusal nothing changes.

    A turn that runs goes on beside the loaded thread, which knows nothing of what comes in it.
    """
    settings = settings_again(session, thread, params, api)
    if session.store is not None:
        session.store.reload(thread)
    if thread.turn is not None:
        thread = session.leave(thread)
    take(session, thread, settings)
    return thread


def take(session: Session, thread: Thread, settings: Settings) -> None:
    """Load a stored thread with these settings."""
    thread.settings, thread.told = settings, settings.model_view()
    thread.allowed = list(session.rules)
    thread.dynamic_tools, thread.approved, thread.limits = [], set(), None
    thread.loaded = True
    thread.restart()
    thread.open()


def loaded(session: Session, thread: Thread, fork: bool = False) -> None:
    """Send the notifications of a loaded thread: another model (if it is not a fork), raw items, MCP's start."""
    if not fork and thread.model not in (None, thread.settings.model):
        values = {"old": thread.model, "new": thread.settings.model}
        message = fill(session.table["sentences"]["other-model"], values)
        thread.emit("warning", {"turn": "auto-compact-0", "message": message})  # its number, as of raw items before a turn
    thread.open_raw()
    thread.emit("mcp-startup-complete")


def copy(session: Session, source: Thread, settings: Settings) -> Thread:
    """Make a thread with the history of another."""
    thread = session.new_thread(settings)
    thread.preview, thread.history, thread.turns = source.preview, [*source.history, *thread.history], list(source.turns)
    thread.said = list(source.said)
    thread.asked = source.asked
    thread.total, thread.last, thread.model = source.total, source.last, source.model
    return thread


def archive(thread: Thread) -> None:
    """Archive a thread: end it and unload it, so that it uses little memory."""
    thread.interrupt()
    if thread.loaded:
        thread.emit("shutdown-complete", {"turn": thread.submit()})
    thread.archived, thread.loaded, thread.listeners = True, False, []
    thread.pack()


def submit(session: Session, thread: Thread, items: list[dict[str, Any]], schema: Any) -> Turn:
    """Make a turn of the user's input; the turn takes the number of the next submission."""
    thread.updated = session.now
    return Turn(thread, session.model, session.table, items, schema)


def begin(thread: Thread, turn: Turn, items: list[dict[str, Any]], before: Any = None, number: str | None = None) -> None:
    """Start the turn, or give its input to the one that runs; `before` and `number` as in `told_of`."""
    told_of(thread, before, number, turn)
    if not items:
        thread.emit("task-complete", {"turn": turn.id, "lastMessage": None, "status": "completed", "error": None})
    elif thread.turn is not None:
        thread.steered.append(items)  # the turn that runs takes it with its next request
    else:
        thread.begin(turn)


def told_of(thread: Thread, before: Any, number: str | None, turn: Turn) -> None:
    """Send the model's input on changed settings as raw items: after the overrides, and again in the next turn.

    `number` is the submission of the overrides, if they have one, and `before` are the settings before them.
    """
    if number is not None:
        thread.tell_changes(before, number)
    if thread.turn is None:  # a turn that is steered begins nothing
        thread.tell_changes(thread.told, turn.id)
        thread.told = thread.settings.model_view()


def interrupt(thread: Thread, request: Any, api: str) -> None:
    """Abort what runs; the request is answered with the abort, and not before."""
    thread.submit()
    thread.interrupts.append((request, api))
    thread.interrupt_soon()


def spoken(session: Session, providers: Any = None, sources: Any = None) -> list[Thread]:
    """Return the threads that are kept and have been spoken in, the latest first.

    `providers` and `sources` select some; without sources those of `codex exec` are left out.
    """
    wanted = sources or ("cli", "vscode")
    kept = [thread for thread in reversed(session.threads.values()) if thread.asked and not thread.ephemeral]
    kept = [thread for thread in kept if thread.source in wanted]
    return [thread for thread in kept if not providers or thread.settings.provider in providers]


def page(data: list[Any], limit: Any, cursor: Any, named: Callable[[Any], str]) -> tuple[list[Any], str | None]:
    """Return one page of a list, and the cursor of the next: the name of its last entry, after which it begins."""
    start = 0
    if cursor is not None:
        # The id decides: two threads may have the same second.
        names = [named(entry).rpartition("|")[2] for entry in data]
        if cursor.rpartition("|")[2] not in names:
            raise Refused(f"invalid cursor: {cursor}")
        start = names.index(cursor.rpartition("|")[2]) + 1
    end = start + limit if isinstance(limit, int) and limit > 0 else len(data)
    return data[start:end], named(data[end - 1]) if end < len(data) else None


def stamp(thread: Thread) -> str:
    """Return the cursor of a thread: the second of its creation, and its id."""
    return strftime("%Y-%m-%dT%H-%M-%S", gmtime(thread.created)) + f"|{thread.id}"
