"""One thread of the scripted fake: its settings, its listeners, its history, and its running turn.

A turn is a generator, which emits events and yields the conditions that it waits for. The thread converts the events of its
turns to frames for its listeners. If there is no listener, the events are kept until a listener is attached, as in the real
server.
"""

from __future__ import annotations

from time import time

from codex_fakes.scripted.state.ids import uuid4, uuid7
from codex_fakes.scripted.state.settings import beginning, unsent
from codex_fakes.scripted.state.waits import Pause, Quiet
from codex_replay.core.wire.json_text import dumps, loads
from codex_replay.protocol.turn.frames import NOTHING, frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from codex_fakes.scripted.state.protocols import Out, Turn
    from codex_fakes.scripted.state.settings import Settings
    from codex_fakes.scripted.state.waits import Ticket

_KEPT = 10_000  # events kept without a listener
#: The events that v1 sends again after a resume: the kind, and its events.
_KEPT_SAYINGS = {
    "user-message": "user_message", "agent-message-completed": "agent_message",
    "reasoning-completed": "agent_reasoning", "usage": "token_count",
    "turn-aborted": "turn_aborted", "thread-rolled-back": "thread_rolled_back",
    "context-compacted": "context_compacted", "review-entered": "entered_review_mode",
    "review-exited": "exited_review_mode", "review-said": "agent_message",
    "agent-message-plain": "agent_message", "user-message-again": "user_message",
    "reasoning-completed-again": "agent_reasoning",
}  # fmt: skip
_SLICE = 200  # events between two checks of the client


class Thread:
    """A conversation of the client, opened by `thread/start` or `newConversation`."""

    def __init__(self, out: Out, settings: Settings, now: float) -> None:
        self.id = uuid7(now)
        self.settings = settings
        self.loaded_with = settings.copy()  # its settings without the changes of turns: those of reviews
        self.cwd = settings.cwd  # where it was started: turns and resuming do not change what is kept
        self.provider = self.filed_under = settings.provider  # the first is shown, lists filter by the second
        self.told = settings.model_view()  # the last description of them for the model
        self.model: str | None = None  # that of the latest turn; a review does not count
        self.created = self.updated = now
        self.preview = ""
        self.before = 1  # the records in its file before the first message of the user: one for each fork, and input items
        self.asked = False  # whether the client has asked anything in it, or in what it is a fork of: else it is not listed
        self.archived = self.ephemeral = False
        self.source = "vscode"  # the program that started it: an app-server or "exec"
        self.loaded = True
        self.heir: Thread | None = None  # the thread as it was loaded again while a turn ran in this one
        self.loads = 0  # how often it was loaded again
        self.listeners: list[tuple[str, str, bool]] = []  # (subscription id, "v1" or "v2", whether it gets raw items)
        self.history: list[dict[str, Any]] = []
        self.turns: list[dict[str, Any]] = []  # as thread/read shows them
        self.said: list[dict[str, Any]] = []  # in the form in which v1 sends it again
        self.git: dict[str, Any] | None = None  # the repository that it is in
        self.dynamic_tools: list[dict[str, Any]] = []
        self.approved: set[Any] = set()  # what was approved for the session
        self.allowed = list(out.rules)  # command prefixes that need no approval
        self.total: dict[str, int] | None = None
        self.last: dict[str, int] | None = None
        self.window: int | None = None  # of the model that made the first usage
        self.lead = 0  # the number of items in the opening of a compacted history; the next load replaces them
        self.limits: dict[str, Any] | None = None  # rate limits in answers since it was loaded; None without an answer
        self.interrupts: list[Any] = []  # interrupt requests without an answer: (id, api)
        self.steered: list[list[dict[str, Any]]] = []  # input that came while a turn ran
        self.turn: Turn | None = None
        self._run: Generator[Any, None, None] | None = None
        self._waits: Any = None
        self._aborting = False
        self.stray: dict[str, Any] | None = None  # the error of a turn that could not begin
        self._submissions = 0
        self.out = out  # the session, which sends the frames and has the pauses of the real server
        self._unheard: list[tuple[str, dict[str, Any], Ticket | None]] = []
        self._heard = 0
        self._happened = 0
        self._packed = b""
        # What later versions show (the traits of turn.json):
        self.clock: bool = out.table["traits"].get("clock", False)
        self.terminals: dict[int, Any] = {}  # the commands that go on, or whose end the model has not read
        self.name: str | None = None
        self.forked_from: str | None = None
        self.failed = False  # whether the latest turn did
        self.reads = False  # whether the client is sent what is unread
        self.given = False  # whether it was made of a history of the client's
        self.written = False  # whether the real server has stored it, without a turn, too
        self.goal: dict[str, Any] | None = None
        self.daybreak: bool | None = None
        self.file_suffix = ""  # of its file, which a revert writes again
        self.flags: list[str] = []  # what the running turn waits for
        self.unread: str | None = None  # the first turn whose answer the client has not marked as read
        self.revision = f"initial:{self.id}"  # of what is unread
        self._since: dict[Any, int] = {}  # item or call -> when it began, in milliseconds since the epoch

    # -- put away ----------------------------------------------------------------------------------------------------

    def pack(self) -> None:
        """Compress the kept frames while the thread is unloaded. With a state folder, the frames stay uncompressed."""
        if self.out.store is not None:
            return
        from zlib import compress

        self._packed = compress(dumps({"history": self.history, "turns": self.turns, "said": self.said}))
        self.history, self.turns, self.said = [], [], []

    def unpack(self) -> None:
        """Decompress the kept frames."""
        if not self._packed:
            return
        from zlib import decompress

        kept = loads(decompress(self._packed))
        self.history, self.turns, self.said = kept["history"], kept["turns"], kept["said"]
        self._packed = b""

    # -- numbers ------------------------------------------------------------------------------------------------------

    def submit(self) -> str:
        """Return the number of the next submission: a turn, an override, an interrupt or a reply."""
        self._submissions += 1
        return str(self._submissions - 1)

    def turn_id(self) -> str:
        """Return the id of the next turn: the number of its submission, or a uuid in versions after 0.92."""
        number = self.submit()
        return uuid7(time()) if self.clock else number

    def item_id(self) -> str:
        """Return an id for an item that has no id from the model."""
        return uuid7(time()) if self.clock else uuid4()

    def restart(self) -> None:
        """Restart the numbering of turns, because the thread is loaded a second time."""
        self._submissions = 0
        self.loads += 1

    def allow(self, prefix: list[str]) -> None:
        """Allow commands that begin with the words in `prefix` without an approval, in this thread and in every later thread."""
        self.allowed.append(prefix)
        self.out.rules.append(prefix)
        if self.out.store is not None:
            self.out.store.allow(prefix)

    # -- saying -------------------------------------------------------------------------------------------------------

    def listen(self, subscription: str, api: str, raw: bool = False) -> None:
        """Attach a listener, with raw items if requested. The listener first gets the frames that nobody has received."""
        self.listeners.append((subscription, api, raw))
        unheard, self._unheard = self._unheard, []
        for name, values, ticket in unheard:
            self._write_out(name, values, ticket)

    def emit(self, name: str, values: dict[str, Any] | None = None, ticket: Ticket | None = None) -> None:
        """Send an event to a listener of the thread. If there are several listeners, each event reaches only one of them."""
        rows = self.out.table["frames"][name]
        if not rows:
            return  # this version says nothing of it
        running = self.turn.id if self.turn is not None else ""
        all_values = {"thread": self.id, "turn": running, "root": running, **(values or {})}
        if self.clock:
            self._clocked(rows, all_values)
        if name in _KEPT_SAYINGS:
            self._keep(name, all_values)
        self._happened += 1
        if self.listeners:
            self._write_out(name, all_values, ticket)
        elif len(self._unheard) < _KEPT:
            self._unheard.append((name, all_values, ticket))

    def announce(self, name: str, values: dict[str, Any]) -> None:
        """Send the v2 notification that follows a response.

        The client gets the notification even if no listener is attached to the thread.
        """
        if self.clock:
            self.emit(name, values)
            return
        for frame in frames(self.out.table["frames"][name], "v2", {"thread": self.id, **values}):
            self.out.send(frame)

    def _clocked(self, rows: list[dict[str, Any]], values: dict[str, Any]) -> None:
        """Add the times of an item to the values of its event. Keep a completed item, and what the turn waits for."""
        values["ms"] = int(time() * 1000)
        values["startedMs"] = self._since.setdefault(values.get("item") or values.get("call"), values["ms"])
        statuses = [row["params"]["status"] for row in rows if row.get("method") == "thread/status/changed"]
        self.flags = statuses[-1].get("activeFlags", []) if statuses else self.flags
        record = values.get("record") or (self.turns[-1] if self.turn is not None and self.turns else None)
        if record is not None and any(row.get("method") == "item/completed" for row in rows):
            done = [frame["params"]["item"] for frame in frames(rows, "v2", values) if frame["method"] == "item/completed"]
            kept = [item for item in done if item["type"] != "commandExecution" or item["status"] != "declined"]
            record.setdefault("full", []).extend(kept)  # the real server does not store a declined command

    @property
    def hears_raw(self) -> bool:
        """Return True if raw items must be sent now, or kept for a later listener that may request them."""
        return not self.listeners or any(raw for _, _, raw in self.listeners)

    def raw(self, *items: dict[str, Any], turn: str | None = None) -> None:
        """Send items of the model's input and output, in the form of the history, to the listeners of raw items."""
        if self.hears_raw and items:
            from codex_fakes.scripted.state.raw import later_raw, raw

            for item in items:
                if self.clock:
                    self.emit("raw-item", {"rawItem": later_raw(item, self.turn.id if self.turn else "", self.item_id)})
                else:
                    self.emit("raw-item", {"item": raw(item), **({} if turn is None else {"turn": turn})})

    def raw_response(self, response: dict[str, Any], usage: dict[str, int] | None) -> None:
        """Send the id and the usage of a completed response to the listeners of raw items, if the version does."""
        if self.clock and self.hears_raw:
            from codex_fakes.scripted.state.raw import response_values

            self.emit("raw-response", response_values(response, usage, self.out.table["shapes"]["tokens"]))

    def open(self) -> None:
        """Add the first items of a new or newly loaded thread to its history: developer instructions and environment."""
        self.history += beginning(self.settings)

    def open_raw(self, turn: str | None = None) -> None:
        """Send the model's input before the first turn (for a review: before the turn `turn`) as raw items."""
        if self.hears_raw:
            from codex_fakes.scripted.state.raw import OPENING, opening

            self.raw(*opening(self.settings if turn is None else self.loaded_with), turn=turn or OPENING)

    def tell_changes(self, before: Any, turn: str) -> None:
        """Report to the model which settings differ from `before`: add items to the model's input, and send them as raw items."""
        if before != self.settings.model_view():
            from codex_fakes.scripted.state.raw import changes

            items = changes(before, self.settings)
            self.history += [item if item["role"] == "user" else unsent(self.settings) for item in items]
            self.raw(*items, turn=turn)

    def tell_mode(self, before: Settings, turn: str) -> None:
        """If the collaboration mode has changed since `before`, add its instructions to the model's input."""
        if before.mode_view() != self.settings.mode_view() and (text := self.settings.mode_text()):
            item = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]}
            self.history.append(item)
            self.raw(item, turn=turn)

    def _keep(self, name: str, values: dict[str, Any]) -> None:
        """Keep an event that the v1 API sends again after a resume: a message of user or model, token counts, an abort."""
        sent = frames(self.out.table["frames"][name], "v1", values)
        messages = [(frame.get("params") or {}).get("msg") or {} for frame in sent]
        self.said += [message for message in messages if message.get("type") == _KEPT_SAYINGS[name]]

    def _write_out(self, name: str, values: dict[str, Any], ticket: Ticket | None) -> None:
        _, api, raw = self.listeners[self._heard % len(self.listeners)]
        self._heard += 1
        if name in ("raw-item", "raw-response") and not raw:
            return
        inner = values.get("inner")
        for frame in frames(self.out.table["frames"][name], api, values):
            if inner is not None:  # a reviewer has a conversation of its own, and its items and calls name that
                message = frame["params"].get("msg") or {}
                message.update((key, value) for key, value in zip(("thread_id", "turn_id"), inner, strict=True) if key in message)
            if "id" in frame:
                if ticket is not None:
                    ticket.api = api
                    self.out.ask(frame, ticket)
            else:
                self.out.send(frame)
        if ticket is not None and not ticket.asked:
            ticket.reply = {"result": {}}  # this kind of listener gets no request

    def running(self) -> list[Any]:
        """Return the commands that go on, by number."""
        return [terminal for _, terminal in sorted(self.terminals.items()) if terminal.code is None]

    def kill(self, number: int | None = None) -> bool:
        """End the commands that go on, or only that with the number `number`. Return True if there was one."""
        killed = [terminal for terminal in self.running() if number in (None, terminal.number)]
        for terminal in killed:
            terminal.end(-1)
            del self.terminals[terminal.number]
        return bool(killed)

    # -- running ------------------------------------------------------------------------------------------------------

    def set_usage(self, total: dict[str, int], last: dict[str, int], window: int | None) -> None:
        """Store the total token usage and the usage of the last reply.

        The first call decides which size of the context window is reported.
        """
        if self.total is None or self.clock:
            self.window = window
        self.total, self.last = total, last

    def set_estimate(self, tokens: int, window: int | None) -> None:
        """Store an estimate of the tokens in the context; also store the context window if it is not stored yet."""
        self.window = window if self.window is None else self.window
        self.total, self.last = self.total or NOTHING, {**NOTHING, "total_tokens": tokens}

    def begin(self, turn: Turn) -> None:
        """Start a turn."""
        self.turn = turn
        self._run = turn.run()
        self._waits = Pause()

    @property
    def waits(self) -> Any:
        """The condition that the running turn waits for, or None if no turn runs."""
        return self._waits if self._run is not None else None

    def step(self, quiet: bool = True) -> None:
        """Let the running turn continue until it must wait, or for a limited time.

        `quiet` is True if no message from the client is waiting at the moment.
        """
        run = self._run
        until = self._happened + _SLICE
        while run is not None and run is self._run and self._waits.ready():
            if not quiet and type(self._waits) is Quiet:
                return
            if self._happened >= until:
                self._waits = Pause()
                return
            try:
                self._waits = next(run)
            except StopIteration:  # the turn is complete, or was closed by an interrupt
                self.settle()
                self.end()
                return

    def end(self) -> None:
        """End the running turn. Input that no request to the model has used is lost, as in the real server."""
        self._run = self._waits = self.turn = None
        self.steered, self._aborting = [], False

    def interrupt(self) -> None:
        """Abort the running turn, if any, and answer the requests that interrupt the turn."""
        if self._run is None or self.turn is None:
            return
        self._run.close()
        self.turn.abort()
        self.end()

    def interrupt_soon(self) -> None:
        """Abort the running turn when no further message arrives; interrupts that arrive together are answered together."""
        if self._run is None or self._aborting:
            return
        self._run.close()
        self._waits, self._aborting = Quiet(), True

    def settle(self) -> None:
        """Apply a pending interrupt before the client's next request or reply is processed."""
        if self._aborting:
            self.interrupt()

    def replace(self) -> None:
        """End the running turn, if a turn runs, because another turn replaces it."""
        if self._run is not None:
            self._run.close()
            self.emit("turn-replaced")
            self.answer_interrupts()
            self.emit("turn-interrupted")
            self.end()

    def idle_copy(self) -> Thread:
        """Return a copy of the thread without its running turn.

        A copy without the turn is needed if the thread is loaded again during a turn.
        """
        other = Thread.__new__(Thread)
        other.__dict__.update(self.__dict__)
        other.history, other.turns, other.said = list(self.history), list(self.turns), list(self.said)
        other.listeners, other.interrupts, other._unheard = list(self.listeners), [], []
        other.end()
        self.heir = other
        return other

    def answer_interrupts(self) -> None:
        """Answer every request for an interrupt of the turn."""
        waiting, self.interrupts = self.interrupts, []
        for request, api in waiting:
            self.out.answer(request, {} if api == "v2" else {"abortReason": "interrupted"})

    # -- showing ------------------------------------------------------------------------------------------------------

    @property
    def read_state(self) -> dict[str, Any]:
        """Return the unread state of the thread."""
        first = None if self.unread is None else {"type": "turn", "turnId": self.unread}
        return {"firstUnread": first, "revision": self.revision}

    @property
    def path(self) -> str | None:
        """Return the path at which the real server would store the thread, or None; the fake does not write the file."""
        return None if self.ephemeral else self.settings.rollout(self.id + self.file_suffix, self.created, self.archived)
