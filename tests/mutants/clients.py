"""The two reference clients: what a lite client asks over HTTP, and what an editor writes to its app-server."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from codex_replay.plugin.editor_client.editor import Editor
from codex_replay.plugin.editor_client.fixture import EditorClient, SubjectFailure
from codex_replay.plugin.lite_client.fixture import LiteClient, Run
from tests.mutants.logged import Log, log_calls, replayed
from tests.mutants.messages import Message, Messages, default_opaque, slots
from tests.mutants.recording import NotReplayable


class Given:
    """Gives the conversations of a case one after the other, as the fixture is called."""

    def __init__(self, found: list[Any]) -> None:
        self.found = found
        self.count = 0

    def next(self) -> Any:
        """Return the next one. Raises `NotReplayable` if there is none."""
        if self.count >= len(self.found):
            raise NotReplayable
        self.count += 1
        return self.found[self.count - 1]


# -- the lite client -------------------------------------------------------------------------------------------------------


class LiteAdapter:
    """A conversation is one run of the client: its requests."""

    subject: str = "lite_client"
    fixture: str = "lite_client"
    opaque: Collection[str] = default_opaque("parameters")
    words: Collection[str] = ("type", "role", "tool_choice", "effort", "summary", "include", "verbosity", "grant_type")

    def record(self, kept: Callable[[], list[Any]]) -> Callable[[], None]:
        """Keep each run."""
        old = LiteClient._run

        def run(self: LiteClient, *given: Any) -> Run:
            found = old(self, *given)
            kept().append(found)
            return found

        LiteClient._run = run  # type: ignore[method-assign,assignment]
        return lambda: setattr(LiteClient, "_run", old)

    def messages(self, one: Run) -> Messages:
        """The requests, by method and the end of the path. A message of a WebSocket has the headers of its handshake."""
        return tuple(
            Message(f"{each.method} {each.path.rpartition('/')[2]}", json.dumps(each.body), headers, None, each)
            for each in one.requests
            for headers in [() if each.method == "WEBSOCKET" else tuple(each.headers)]
        )

    def changed(self, one: Run, messages: Messages) -> Run:
        """The run with other requests."""
        other = copy.copy(one)
        other.requests = [
            replace(each.place, body=each.value, headers=list(each.headers or each.place.headers)) for each in messages
        ]
        return other

    def leaves_out(self, kind: str, path: str, what: str) -> bool:
        """Nothing."""
        return False

    def stand_in(self, nodeid: str, found: list[Any]) -> Any:
        """Return a client whose runs are these."""
        return ReplayedLite(found)

    def finish(self, stand_in: Any) -> None:
        """Nothing is checked behind a case."""


class ReplayedLite(LiteClient):
    """The fixture's stand-in."""

    def __init__(self, found: list[Any]) -> None:
        self.argv, self.cwd, self.folder = (), Path(), Path("/nowhere")
        self.runs = []
        self._given = Given(found)

    def __call__(self, prompt: str = "Hello", **given: Any) -> Run:
        """Return the next run."""
        run: Run = self._given.next()
        self.runs.append(run)
        return run


# -- the editor ------------------------------------------------------------------------------------------------------------

#: What waits for the editor's process, or reads what passed; everything else follows from the ledger.
DONE = (
    *("prompt", "decide", "interrupt", "turn", "close", "hang_up", "ended", "wait", "end", "wait_shown"),
    *("running_servers", "open_gate", "close_gates"),
)
READ = ("_until_wire", "ledger")


class EditorAdapter:
    """A conversation is one run of the editor: the lines that it wrote to its servers."""

    subject: str = "editor_client"
    fixture: str = "editor_client"
    opaque: Collection[str] = default_opaque()
    words: Collection[str] = ("type", "decision", "method", "jsonrpc")

    def record(self, kept: Callable[[], list[Any]]) -> Callable[[], None]:
        """Keep each editor, and what it did."""
        old, ledger = EditorClient.__call__, Editor.ledger

        def start(self: EditorClient, *given: Any, **more: Any) -> Editor:
            editor = old(self, *given, **more)
            kept().append(RecordedEditor(editor))
            return editor

        def length(editor: Editor) -> int:
            editor.__dict__["_mutants_ledger"] = ledger(editor)
            return len(editor.__dict__["_mutants_ledger"])

        EditorClient.__call__ = start  # type: ignore[method-assign]
        end_log = log_calls(Editor, (*DONE, *READ), length)

        def end() -> None:
            EditorClient.__call__ = old  # type: ignore[method-assign]
            end_log()

        return end

    def messages(self, one: RecordedEditor) -> Messages:
        """The lines of the editor by their methods."""
        return tuple(
            Message(_kind(entry["got"]), entry["got"], place=at) for at, entry in enumerate(one.ledger) if _kind(entry.get("got"))
        )

    def changed(self, one: RecordedEditor, messages: Messages) -> RecordedEditor:
        """The editor with other lines in the places of its own."""
        lines = slots(messages)
        entries = [
            [{**entry, "got": text} for text in lines.get(at, [])] if _kind(entry.get("got")) else [entry]
            for at, entry in enumerate(one.ledger)
        ]
        return RecordedEditor(one.live, entries)

    def leaves_out(self, kind: str, path: str, what: str) -> bool:
        """Nothing."""
        return False

    def stand_in(self, nodeid: str, found: list[Any]) -> Any:
        """Return a fixture whose editors are these."""
        given = Given(found)
        return lambda *_, **__: ReplayedEditor(given.next())

    def finish(self, stand_in: Any) -> None:
        """Nothing is checked behind a case."""


def _kind(line: str | None) -> str:
    """Return the method of a line, or what it answers with; "" for no line, and for one that is not a message."""
    try:
        value = json.loads(line or "")
    except ValueError:
        return ""
    return str(value.get("method") or ("error" if "error" in value else "answer"))


class RecordedEditor:
    """One editor, with what was taken down of it: each entry as the entries that are in its place."""

    def __init__(self, live: Editor, entries: list[list[dict[str, Any]]] | None = None) -> None:
        self.live = live
        self._entries = entries

    @property
    def ledger(self) -> list[dict[str, Any]]:
        """What passed, to the end."""
        found: list[dict[str, Any]] = self.live.__dict__.get("_mutants_ledger", [])
        return found

    @property
    def entries(self) -> list[list[dict[str, Any]]]:
        """The same, each entry as a list."""
        return [[entry] for entry in self.ledger] if self._entries is None else self._entries


class ReplayedEditor(Editor):
    """The editor's stand-in: what it did, with the changed lines."""

    def __init__(self, one: RecordedEditor) -> None:
        self.__dict__.update(one.live.__dict__)
        self.log = Log(one.live)
        self._one = one
        self.process = SimpleNamespace(status=0, wait=lambda _=0: 0)  # type: ignore[assignment]

    def ledger(self) -> list[dict[str, Any]]:
        """Return what had passed by then."""
        if self.log.next_is("ledger"):
            self.log.take("ledger")
        return [entry for entries in self._one.entries[: self.log.length] for entry in entries]

    def _until_wire(self, true: Callable[[], bool], what: str) -> None:
        self.log.take("_until_wire")
        if not true():
            raise SubjectFailure(what)

    def report_on(self, what: str) -> str:
        """Return the sentence."""
        return what

    def cause(self) -> str:
        """Return no cause."""
        return ""


for _name in DONE:
    setattr(ReplayedEditor, _name, replayed(_name))
