"""What is wrong on purpose in the scripted fake, one thing for each class of lives of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from codex_fakes.scripted.methods import both, review, table, v2
from codex_fakes.scripted.state import thread as scripted_thread


def _loads_as_it_was(session: Any, thread: Any, params: Any, api: str) -> None:
    """Keep settings, tools and approvals, as if a thread were never unloaded."""
    thread.settings.change(params, api)
    thread.loaded = True
    thread.restart()


def _copies_no_turns(session: Any, source: Any, settings: Any) -> Any:
    thread = review.copy(session, source, settings)
    thread.turns = []
    return thread


def _rolls_back_one(session: Any, request: Any, params: Any) -> None:
    """Take one turn back, whatever is asked for."""
    v2.thread_rollback(session, request, {**params, "numTurns": min(params["numTurns"], 1)})


def _archives_and_keeps_loaded(thread: Any) -> None:
    thread.archived = True
    thread.pack()


def _as_reviewed(session: Any, thread: Any, params: Any, api: str) -> Any:
    """Begin a detached review with the settings of the thread that it was asked in."""
    return thread.settings.copy()


def _hears_raw_items_on(session: Any, request: Any, params: Any) -> None:
    """Tell raw items to who asked for those of a thread after it was loaded again, too."""
    v2.thread_resume(session, request, params)
    for thread in session.threads.values():
        thread.listeners = [(subscription, api, True) for subscription, api, _ in thread.listeners]


#: Class -> how the fake is broken for it.
BROKEN: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "resumed threads": lambda patch: patch.setattr(v2, "load", _loads_as_it_was),
    "forked threads": lambda patch: patch.setattr(v2, "copy", _copies_no_turns),
    "deep forks": lambda patch: patch.setattr(both, "_HEAD", 1000),
    "rollbacks": lambda patch: patch.setitem(table.METHODS, "thread/rollback", _rolls_back_one),
    "archived threads": lambda patch: patch.setattr(v2, "archive", _archives_and_keeps_loaded),
    "reviews of loaded threads": lambda patch: patch.setattr(review, "settings_again", _as_reviewed),
    "loaded conversations": lambda patch: patch.delitem(scripted_thread._KEPT_SAYINGS, "agent-message-completed"),
    "raw items of loaded threads": lambda patch: patch.setitem(table.METHODS, "thread/resume", _hears_raw_items_on),
}
