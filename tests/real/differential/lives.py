"""Random lives of threads: turns, and between them what loads, forks, rolls back, puts away, reviews, lists and reads a thread.

A life is a list of deeds, each a sort, the thread that it is done to (counted in a circle) and a choice that the sort makes use
of. `_life` makes a scenario of it (see `tests.real.differential.scenarios`): it knows which threads there are then, which of
them are loaded
and which have been put away, so that a turn is waited for only where one begins. What is refused is asked all the same.

Left out is what one server for all scenarios cannot show, or what the fake does not do:

- `thread/loaded/list`: it would name the threads of all scenarios before;
- lists in the order of the last change: the time of a file, which two threads may be given within one second;
- compaction, of a thread that is loaded again too: the fake has none (docs/fake-codex.md);
- a command in the thread of a detached review, until that is loaded again: the real server has no sandbox for it to run in there
  ("LandlockSandboxExecutableNotProvided"), and what a command gives is the script's;
- a review where nothing was said yet, and a detached one of a thread that was loaded before anything was said in it: its first
  words then stand too far behind in its file for the real server to tell them with thread/started;
- what is left of the context after a rollback, an estimate over texts that the fake does not have
(`tests.fakes.scripted.differing`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from codex_fakes.scripted.methods import both, review, table, v2
from codex_fakes.scripted.state import thread as scripted_thread
from tests.real.differential.scenarios import FREE, GATE, TOOL, conversation, dynamic, plan, shell, with_raw, words

ASKING = {"approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
HISTORY = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "From elsewhere."}]}]
#: What a thread is started with, and what a request that loads it says.
STARTED = [{}, ASKING, {**ASKING, "model": "gpt-5.2"}, {**ASKING, "config": {"model_reasoning_effort": "high"}}, FREE]
LOADED = [
    ASKING,
    {},
    FREE,
    {"model": "gpt-5.1"},
    {"developerInstructions": "Be kind."},
    {"config": {"model_reasoning_effort": "low"}},
]
TARGETS = [
    {"type": "custom", "instructions": "Look at it."},
    {"type": "uncommittedChanges"},
    {"type": "commit", "sha": "0123456789abcdef", "title": "A"},
]
CALLS = {
    "read": ("thread/read", [{"includeTurns": True}, {}]),
    "list": ("thread/list", [{}, {"archived": True}, {"limit": 1}]),
    "rollback": ("thread/rollback", [{"numTurns": 1}, {"numTurns": 2}, {"numTurns": 9}, {"numTurns": 0}]),
    "archive": ("thread/archive", [{}]),
    "unarchive": ("thread/unarchive", [{}]),
    "summary": ("getConversationSummary", [{}]),
    "conversations": ("listConversations", [{}, {"pageSize": 1}]),
    "archive v1": ("archiveConversation", [{}]),
}
LOADS = ("thread/resume", "thread/fork")
TURNS = ("text", "text", "exec", "dynamic", "plan", "failed", "interrupted")


class _Thread:
    """What is known of a thread at some point of a life."""

    def __init__(self) -> None:
        self.loaded, self.archived, self.spoken = True, False, False
        self.runs = True  # whether a command can be run in it
        self.late = False  # whether it was loaded before anything was said in it


class _Life:
    """A scenario in the making."""

    def __init__(self, api: str) -> None:
        self.api = api
        self.script: list[Any] = []
        self.steps: list[Any] = []
        self.threads = [_Thread()]
        self._calls = 0
        self._gated = False

    def turn(self, number: int, sort: str, text: str, decision: str) -> None:
        """Run a turn of some sort; or ask for one where none can begin."""
        thread = self.threads[number]
        if not thread.loaded:
            params: dict[str, Any] = {"input": [{"type": "text", "text": text}]}
            if self.api == "v1":
                self.steps.append({"thread": number, "call": "sendUserMessage", "params": {"items": [_v1(text)]}})
            else:
                self.steps.append({"thread": number, "call": "turn/start", "params": params})
            return
        thread.spoken = True
        self._calls += 1
        call = f"call_{self._calls}"
        step: dict[str, Any] = {"thread": number, "text": f"Do {self._calls}.", "decide": {"*": decision}}
        step["answer"] = {"*": {"output": text, "success": True}}
        message = {"type": "text", "text": text}
        if sort == "exec" and thread.runs:
            self.script += [{"items": [shell(call, "printf marker")]}, {"items": [message]}]
        elif sort == "dynamic":
            self.script += [{"items": [dynamic(call, text)]}, {"items": [message]}]
        elif sort == "plan":
            self.script += [{"items": [plan(call, [{"step": text, "status": "pending"}])]}, {"items": [message]}]
        elif sort == "failed":
            self.script.append({"status": 400, "body": text})
        elif sort == "interrupted" and not self._gated:
            self._gated = True  # a gate stands but once
            search = {"type": "web_search_call", "query": "where to break in"}  # which no other turn says
            self.script.append({"items": [message, search, {"type": "gate", "name": GATE}]})
            step |= {"interrupt": "codex/event/web_search_end", "gate": GATE}
        else:
            self.script.append({"items": [{"type": "reasoning", "summary": [text], "content": ["raw"]}, message]})
        self.steps.append(step)

    def load(self, number: int, method: str, params: dict[str, Any]) -> None:
        """Load a thread again, or a fork of it."""
        thread = self.threads[number]
        self.steps.append({"thread": number, "load": method, "params": params})
        thread.late = thread.late or not thread.spoken
        if "history" in params:
            self.threads.append(_Thread())
        elif not thread.archived:
            if "fork" in method:
                self.threads.append(_Thread())
                self.threads[-1].spoken, self.threads[-1].late = thread.spoken, thread.late
            else:
                thread.loaded = thread.runs = True

    def review(self, number: int, target: Any, detached: bool, text: str) -> None:
        """Review a loaded thread's place, in it or in a thread of its own."""
        thread = self.threads[number]
        detached = detached and not thread.late
        params = {"delivery": "detached"} if detached else {}
        if not thread.loaded:
            self.steps.append({"thread": number, "call": "review/start", "params": {"target": target, **params}})
            return
        if not thread.spoken:
            self.turn(number, "text", text, "accept")
        self.script.append({"items": [{"type": "text", "text": text}]})
        self.steps.append({"thread": number, "review": target, "params": params})
        if detached:
            self.threads.append(_Thread())
            self.threads[-1].runs, self.threads[-1].spoken = False, True

    def call(self, number: int, sort: str, choice: int) -> None:
        """Ask something that is answered at once."""
        thread = self.threads[number]
        method, choices = CALLS[sort]
        self.steps.append({"thread": number, "call": method, "params": choices[choice % len(choices)]})
        if sort.startswith("archive") and not thread.archived:
            thread.archived, thread.loaded = True, False
        elif sort == "unarchive":
            thread.archived = False


def _v1(text: str) -> dict[str, Any]:
    return {"type": "text", "data": {"text": text}}


def _life(deeds: list[tuple[str, int, int]], text: str, decision: str, started: Any, api: str = "v2") -> dict[str, Any]:
    life = _Life(api)
    if deeds[0][2] % 5:  # else nothing has been said in the thread yet
        life.turn(0, TURNS[deeds[0][2] % len(TURNS)], text, decision)
    for sort, which, choice in [*deeds, ("turn", -1, 0)]:
        number = which % len(life.threads)
        if sort == "turn":
            life.turn(number, TURNS[choice % len(TURNS)], text, decision)
        elif sort in LOADS:
            life.load(number, sort, LOADED[choice % len(LOADED)])
        elif sort == "history":
            life.load(number, "thread/resume", {"history": HISTORY, **LOADED[choice % len(LOADED)]})
        elif sort in ("resumeConversation", "forkConversation"):
            overrides = LOADED[choice % len(LOADED)]
            life.load(number, sort, {"overrides": overrides} if overrides else {})
        elif sort in ("inline", "detached"):
            life.review(number, TARGETS[choice % len(TARGETS)], sort == "detached", text)
        else:
            life.call(number, sort, choice)
    settings = started if api == "v1" else {**started, "dynamicTools": [TOOL]}
    return conversation(life.script, life.steps, api, settings=settings)


def lives(*sorts: str, api: str = "v2") -> st.SearchStrategy[Any]:
    """Return lives of these sorts of deeds, the likelier the more often it is named."""
    deed = st.tuples(st.sampled_from(sorts), st.integers(0, 5), st.integers(0, 20))
    return _lives(st.lists(deed, min_size=2, max_size=5), api)


def _deep_forks() -> st.SearchStrategy[Any]:
    """Return lives in which a thread is forked before and after its first message, and each fork again."""
    load = st.tuples(st.sampled_from(["thread/fork", "thread/fork", "thread/resume"]), st.just(-1), st.integers(1, 20))
    other = st.tuples(st.sampled_from(["turn", "read", "thread/resume"]), st.integers(-3, -1), st.integers(0, 20))
    end = [("list", 0, 0), ("read", -1, 0), ("read", -2, 0)]
    deeds = st.builds(
        lambda before, after: [("read", 0, 0), *before, ("turn", -1, 1), *after, *end],
        st.lists(load, max_size=3),
        st.lists(st.one_of(load, load, other), min_size=2, max_size=6),
    )
    return _lives(deeds, "v2")


def _lives(deeds: st.SearchStrategy[Any], api: str) -> st.SearchStrategy[Any]:
    return st.builds(
        _life,
        deeds,
        words,
        st.sampled_from(["acceptForSession", "accept", "decline"]),
        st.sampled_from(STARTED),
        st.just(api),
    )


KINDS: dict[str, st.SearchStrategy[Any]] = {
    "resumed threads": lives("thread/resume", "thread/resume", "turn", "turn", "read", "list", "history"),
    "forked threads": lives("thread/fork", "thread/fork", "turn", "turn", "read", "list"),
    # 0.92.0 reads ten records of a file for the preview: after some forks, the first message is beyond them.
    "deep forks": _deep_forks(),
    "rollbacks": lives("rollback", "rollback", "turn", "turn", "read", "thread/resume", "thread/fork", "history"),
    "archived threads": lives("archive", "archive", "unarchive", "unarchive", "turn", "read", "list", *LOADS),
    "reviews of loaded threads": lives("inline", "detached", "thread/resume", "thread/fork", "turn", "read", "rollback"),
    "loaded conversations": lives(
        "resumeConversation", "resumeConversation", "forkConversation", "forkConversation", "turn", "turn",
        "summary", "conversations", "archive v1", api="v1",
    ),
}  # fmt: skip
KINDS["raw items of loaded threads"] = st.one_of(*KINDS.values()).map(with_raw)


# -- what is wrong on purpose in the scripted fake, one thing for each class -------------------------------------------------


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
