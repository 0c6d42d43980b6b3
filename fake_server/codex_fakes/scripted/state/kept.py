"""Read and write the file of one thread in the state folder (FAKE_CODEX_STATE).

Each line of the file is a JSON object that describes a change of the thread.

`meta` has the changed members of the thread; in the first line of the file, `meta` has all members. `drop` has the number of
items that were removed at the end of the history, and the number of items that were removed at the end of v1's events. `history`
and `said` have the items that were added to the history and to v1's events. `turns` has the key and the content of each turn that
was added or replaced. `gone` has the keys of the turns that were removed.
"""

from __future__ import annotations

from codex_replay.core.wire.json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from codex_fakes.scripted.state.thread import Thread

FORMAT = 1
_PLAIN = (
    "created", "updated", "preview", "before", "asked", "archived", "cwd", "model", "git", "total", "last", "window", "lead",
    "source", "provider", "filed_under",
    "name", "forked_from", "failed", "given", "unread", "revision", "written", "goal", "daybreak", "file_suffix",
)  # fmt: skip
_SETTINGS = ("cwd", "model", "policy", "sandbox", "effort", "tier")  # that versions after 0.92 keep
_LATEST = 2  # the last turns may still change: a review adds two at once


class Broken(Exception):
    """A line of a thread's file has a form that this version of fake-codex never writes."""


def _meta(thread: Thread) -> dict[str, Any]:
    meta = {name: getattr(thread, name) for name in _PLAIN}
    if thread.clock:
        meta["settings"] = {name: getattr(thread.settings, name) for name in _SETTINGS}
        meta["dynamic_tools"] = thread.dynamic_tools
    return {"format": FORMAT, **meta, "base_instructions": thread.settings.base_instructions}


def _begun(thread: Thread) -> list[dict[str, Any]]:
    """Return the turns of a thread that have a prompt.

    If a process ends before it stores the prompt of a turn, the turn does not count as started.
    """
    return [turn for turn in thread.turns if turn["items"]]


class Kept:
    """The state of a thread's file: how much of the file is read (`offset` in bytes, `lines`), and which part of the thread the
    file contains.
    """

    def __init__(self) -> None:
        self.offset = self.lines = 0
        self.foreign = False  # whether another process has added to a thread that is loaded here
        self._meta: dict[str, Any] = {}
        self._history: list[Any] = []
        self._said: list[Any] = []
        self._turns: list[tuple[str, Any, bytes]] = []  # key, turn, and its text in the file

    def changed(self, thread: Thread) -> bool:
        """Return True if the file lacks a change of the thread."""
        if self._meta != _meta(thread) or len(self._turns) != len(_begun(thread)):
            return True
        if len(self._history) != len(thread.history) or len(self._said) != len(thread.said):
            return True
        return any(dumps(turn) != text for _, turn, text in self._turns[-_LATEST:])

    # -- writing ----------------------------------------------------------------------------------------------------------

    def entry(self, thread: Thread, key: Callable[[], str]) -> dict[str, Any]:
        """Return the line for the file with the changes of a thread since the last line.

        The function `key` makes the key of a new turn.
        """
        meta = _meta(thread)
        changed = {name: value for name, value in meta.items() if name not in self._meta or self._meta[name] != value}
        history, events = _shared(self._history, thread.history), _shared(self._said, thread.said)
        known = {id(turn): (key_, text) for key_, turn, text in self._turns}
        turns: list[tuple[str, Any, bytes]] = []
        added = []
        for turn in _begun(thread):
            text = dumps(turn)
            name, before = known.pop(id(turn), ("", b""))
            name = name or key()
            if text != before:
                added.append([name, turn])
            turns.append((name, turn, text))
        entry = {
            "meta": changed,
            "drop": [len(self._history) - history, len(self._said) - events],
            "history": thread.history[history:],
            "said": thread.said[events:],
            "turns": added,
            "gone": [name for name, _ in known.values()],
        }
        self._meta, self._turns = meta, turns
        self._history, self._said = list(thread.history), list(thread.said)
        return entry

    # -- reading ----------------------------------------------------------------------------------------------------------

    def apply(self, thread: Thread, entry: dict[str, Any]) -> None:
        """Give a thread the state in one line of its file.

        If the thread is loaded, the model's input in the line, which another process wrote, is ignored.
        """
        meta = entry["meta"]
        if meta.get("format", FORMAT) != FORMAT:
            raise Broken
        drop, dropped = entry["drop"]
        if thread.loaded:
            self.foreign = True
            self._apply_to_loaded(thread, meta)
        else:
            self._meta.update(meta)
            for name, value in meta.items():
                if name in _PLAIN or name == "dynamic_tools":
                    setattr(thread, name, value)
                elif name != "format":
                    for setting, chosen in (value if name == "settings" else {name: value}).items():
                        setattr(thread.settings, setting, chosen)
            del thread.history[len(thread.history) - drop :]
            thread.history += entry["history"]
            self._history = list(thread.history)
        unsaved = thread.said[len(self._said) :]
        self._said = [*self._said[: len(self._said) - dropped], *entry["said"]]
        thread.said[:] = [*self._said, *unsaved]
        self._apply_turns(thread, dict(entry["turns"]), set(entry["gone"]))

    def _apply_to_loaded(self, thread: Thread, meta: dict[str, Any]) -> None:
        """Copy the members that a list of threads shows to a loaded thread.

        A loaded thread keeps its own values of all other members, and stores them when they change.
        """
        own = _meta(thread)
        shown = ("archived",) if thread.asked else ("archived", "asked", "preview", "before")
        for name, value in meta.items():
            if name in shown:
                setattr(thread, name, value)
            if name in shown or own[name] != self._meta.get(name):
                self._meta[name] = value

    def _apply_turns(self, thread: Thread, changed: dict[str, Any], gone: set[str]) -> None:
        turns = []
        for key, turn, text in self._turns:
            if key in changed:
                turn.clear()
                turn.update(changed.pop(key))
                text = dumps(turn)
            if key not in gone:
                turns.append((key, turn, text))
        turns += [(key, turn, dumps(turn)) for key, turn in changed.items()]
        known = {id(turn) for _, turn, _ in self._turns}
        unsaved = [turn for turn in thread.turns if id(turn) not in known]
        thread.turns[:] = [*(turn for _, turn, _ in turns), *unsaved]
        self._turns = turns


def _shared(one: list[Any], other: list[Any]) -> int:
    """Return the number of equal items at the beginning of two lists."""
    if other[: len(one)] == one:
        return len(one)
    return next(i for i, item in enumerate(one) if i >= len(other) or other[i] != item)
