"""One turn of the scripted fake, from the user's input to turn/completed, in the order of the real binary.

`run` is a generator: it emits what happens and yields what it waits for (`Ticket`, `Sleep`, `Gate`, `Pause`). Each request to the
model is one `Sampling`; when it ends, the calls of the reply are run one after the other, and their outputs are the next
request, until a reply asks for nothing more. Order and texts come from recordings; see turn.json and REAL-51 to REAL-80.
"""

from __future__ import annotations

from time import time

from codex_fakes.scripted.state.waits import Gate, Pause, Quiet, Sleep, SleepOrSteer
from codex_fakes.scripted.turns.calls import Aborted
from codex_fakes.scripted.turns.input import user_history, user_values
from codex_fakes.scripted.turns.request import body_of, message
from codex_fakes.scripted.turns.tools import Tools
from codex_replay.protocol.turn.frames import add_usage, error_v2, failure, fill, usage_values
from codex_replay.protocol.turn.stream import Sampling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from codex_fakes.scripted.state.model import Model
    from codex_fakes.scripted.state.thread import Thread
    from codex_fakes.scripted.turns.citations import Citations

    Run = Generator[Any, None, None]

_LOOK = 64  # events of one reply between two checks of the client


class Turn:
    """A turn: `id` is the submission that began it; `items` are the user's, as v2's turn/start takes them."""

    kind = "turn"

    def __init__(self, thread: Thread, model: Model, table: dict[str, Any], items: list[dict[str, Any]], schema: Any) -> None:
        self.id = thread.turn_id()
        self.thread = thread
        self.settings = thread.settings  # overrides while it runs are for the next turn
        self.table = table
        self.schema = schema
        self._model = model
        self._items = items
        self._tools = Tools(thread, self, table)
        self._shown: dict[str, Any] = {"items": [], "status": "completed", "error": None}
        self._error: dict[str, Any] | None = None
        self._last_message: str | None = None
        self._begun = time()
        self._citations: Citations | None = None
        self._late: bool = table["traits"].get("lateUsage", False)  # later versions report usage once the calls have run

    @property
    def _listed(self) -> dict[str, Any]:
        """The turn in which `thread/read` shows what comes now: the latest one, if the thread was loaded again in mid-turn."""
        heir = self.thread.heir
        while heir is not None and heir.heir is not None:
            heir = heir.heir
        return self._shown if heir is None or not heir.turns else heir.turns[-1]

    def sentence(self, key: str, /, **values: Any) -> str:
        """Return a text of the table's "sentences"."""
        text: str = fill(self.table["sentences"][key], values)
        return text

    # -- the whole ----------------------------------------------------------------------------------------------------

    def run(self) -> Run:
        """Run the turn to its end."""
        thread = self.thread
        thread.turns.append(self._shown)
        thread.delay_output("start")
        thread.emit("task-started", {"window": self.settings.window()})
        self._user_message()
        yield Quiet()
        try:
            yield from self._samplings()
        except Aborted:
            self.abort()
            return
        status = "failed" if self._error is not None else "completed"
        # Errors are not kept, so the turn is shown again as completed.
        thread.failed = status == "failed"
        values = {"lastMessage": self._last_message, "status": status, "error": self._error}
        thread.emit("task-complete", {**values, **self._times(status, self._error)})

    def abort(self) -> None:
        """End the turn as an interrupt does: calls without an output get one, and the model's input has a note."""
        thread = self.thread
        self._tools.abandon()
        text = self.sentence("turn-aborted")
        thread.history.append(message("user", "input_text", text))
        self._shown["status"] = "interrupted"
        thread.emit("turn-aborted")
        thread.answer_interrupts()
        thread.failed = False
        thread.emit("turn-interrupted", self._times("interrupted", None))
        if self._tools.undecided is not None:
            thread.emit("request-resolved", {"request": self._tools.undecided})

    def _times(self, status: str, error: Any) -> dict[str, Any]:
        """Return the values of the end of a turn that only later versions show, and keep the turn as they list it."""
        thread, now = self.thread, time()
        full = self._shown.get("full", [])
        texts = [item for item in full if item["type"] == "agentMessage" and item["text"].strip()]
        messages = texts if status == "completed" else []
        times = {"startedAt": int(self._begun), "completedAt": int(now), "durationMs": int((now - self._begun) * 1000)}
        if thread.clock:
            ended = {"items": full, "itemsView": "full", "status": status, "error": error, **times}
            if messages:
                thread.revision, thread.unread = thread.item_id(), thread.unread or self.id
            self._shown["shown"] = {**self.table["shapes"]["turn"], "id": self.id, "rootTurnId": self.id, **ended}
        return {
            **times,
            "items": messages[-1:],
            "itemsView": "summary" if messages else "notLoaded",
            "completed": True if status == "completed" else None,
            "readState": thread.read_state if thread.reads and messages else None,
        }

    def _user_message(self) -> None:
        thread = self.thread
        values = self._user_values(self._items)
        thread.history.append(user_history(self._items))
        thread.raw(thread.history[-1])
        if not thread.asked and not thread.preview:  # the preview of a history that the client gave stays
            thread.preview = values["preview"]
        thread.asked, thread.model = True, self.settings.model
        self._listed["items"].append({"type": "userMessage", "content": values["kept"]})
        thread.emit("user-message", {"item": thread.item_id(), **values})

    def _user_values(self, items: list[dict[str, Any]]) -> dict[str, Any]:
        values = user_values(items)
        if self.thread.clock:
            for part in values["contentV2"]:
                if part["type"] in ("image", "localImage"):
                    part["detail"] = None
        return values

    def _samplings(self) -> Run:
        thread = self.thread
        while True:
            # Before the first request, too: the real server joins a message that is already there into it.
            steered, thread.steered = thread.steered, []
            inputs = [user_history(items) for items in steered]
            thread.history += inputs
            thread.raw(*inputs)
            for items in steered:
                thread.emit("steered-message", {"item": thread.item_id(), **self._user_values(items)})
            sampling = Sampling(self.table["model"])
            yield from self._sample(sampling)
            if self._error is not None:
                return
            if diff := self._tools.diff.text():
                thread.emit("turn-diff", {"diff": diff})
            if not self._tools.ran and not thread.steered:
                self._last_message = sampling.last_message
                return

    # -- one request to the model -------------------------------------------------------------------------------------

    def _sample(self, sampling: Sampling) -> Run:
        """Ask the model until a reply is whole; `sampling` is the last attempt. If no retry is left, set the turn's error."""
        requests, streams = self.settings.retries()
        requested = streamed = 0
        thread = self.thread
        self._tools.ran = 0
        body = body_of(thread, self.settings, self.schema, self.kind)  # what a failed attempt has said is not in the next attempt
        while True:
            reply = self._model.ask(body, {"thread": self.thread.id, "turn": self.id}, self.settings.url())
            yield from thread.gap("model")
            if reply.wait_ms:
                yield Sleep(reply.wait_ms / 1000)
            if reply.failure is None:
                self._limits(reply.limits)
                yield from self._stream(reply.acts, reply.results, sampling)
                if sampling.end is not None and ("completed" in sampling.end or "steered" in sampling.end):
                    return
            cause = reply.failure or {"url": self.settings.url(), **(sampling.end or {})}
            failed = failure(self.table["errors"], {"text": "", **cause})
            if "request" in failed["retry"] and requested < requests:
                requested += 1
                continue
            requested = 0
            if failed.get("limited"):
                self._limits(reply.limits)
            if "stream" in failed["retry"] and streamed < streams:
                streamed += 1
                self._reconnecting(failed, streamed, streams)
                sampling.__init__(self.table["model"])  # type: ignore[misc]
                yield Pause()
                continue
            self._fail(failed)
            return

    def _stream(self, acts: list[Any], results: dict[str, Any], sampling: Sampling) -> Run:
        """Run a reply; later versions report the usage behind it, also behind one that is broken off."""
        try:
            yield from self._reply(acts, results, sampling)
        finally:
            if self._late:
                self._usage()

    def _reply(self, acts: list[Any], results: dict[str, Any], sampling: Sampling) -> Run:
        thread = self.thread
        self._tools.results = results
        done = 0
        for number, act in enumerate(acts):
            if type(act) is not tuple:
                for name, values in self._cited(sampling.receive(act)):
                    if name == "reasoning-completed":
                        raw = self.settings.config.get("show_raw_agent_reasoning")
                        values["shown"] = values["content"] if raw else []
                    thread.emit(name, values)
                    if name == "agent-message-completed":
                        self._listed["items"].append({"type": "agentMessage", "text": values["text"]})
                    elif name == "reasoning-completed":
                        shown = {"type": "reasoning", "summary": values["summary"], "content": values["shown"]}
                        self._listed["items"].append(shown)
                thread.history += sampling.history[done:]
                thread.raw(*sampling.history[done:])
                done = len(sampling.history)
                if sampling.end is not None:
                    break
                if number % _LOOK == _LOOK - 1:
                    yield Pause()
                continue
            what, how = act
            if what == "end":
                if how == "idle":
                    yield Sleep(self.settings.idle_seconds())
                sampling.close(how)
                break
            yield from self._tools.run(sampling)  # tools run while the stream stands still
            if not self._late:
                yield Sleep(how / 1000) if what == "wait" else Gate(thread.steered)
                continue
            yield SleepOrSteer(how / 1000, thread.steered) if what == "wait" else Gate(thread.steered)
            if thread.steered:  # the reply is broken off, and the next request has the input
                sampling.end = {"steered": True}
                break
        sampling.close()
        if sampling.usage is not None:
            thread.total, thread.last = add_usage(thread.total, sampling.usage), sampling.usage
            if "completed" not in (sampling.end or ()):  # an incomplete reply counts, and is not the last
                thread.last = dict.fromkeys(sampling.usage, 0)
        ended = sampling.end is not None and "completed" in sampling.end
        if ended and not self._late:
            self._usage()
        if ended or (sampling.end is not None and "steered" in sampling.end):
            yield from self._tools.run(sampling, ended=True)
        else:
            self._tools.drop(sampling)

    def _cited(self, happenings: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
        """Take the citations out of the text, in versions that have them."""
        if "citation" not in self.table:
            return happenings
        if self._citations is None:
            from codex_fakes.scripted.turns.citations import Citations

            self._citations = Citations(*self.table["citation"])
        return self._citations.pass_on(happenings)

    def _limits(self, given: dict[str, Any]) -> None:
        """Take the rate limits of an answer, and report them."""
        thread = self.thread
        if given or thread.limits:
            from codex_replay.protocol.turn.limits import joined

            given = joined(thread.limits, given)
        thread.limits = given
        if not self._late:
            self._usage()

    def _usage(self) -> None:
        thread = self.thread
        names = self.table["shapes"]["tokens"] if thread.clock else None
        thread.emit("usage", usage_values(thread.total, thread.last, self.settings.window(), thread.limits, names))

    # -- what goes wrong ----------------------------------------------------------------------------------------------

    def _reconnecting(self, failed: dict[str, Any], n: int, limit: int) -> None:
        message = self.sentence("reconnecting", n=n, limit=limit)
        info = {"response_stream_disconnected": {"http_status_code": failed.get("streamStatus")}}
        values = {"message": message, "info": info, "details": failed["message"]}
        self.thread.emit("stream-error", {**values, "error": self._error_v2(message, info, failed["message"])})

    def _error_v2(self, text: str, info: Any, details: str | None = None) -> dict[str, Any]:
        more = self.table["shapes"]["error"] if self.thread.clock else {}
        return {**error_v2(text, info, details), **more}

    def _fail(self, failed: dict[str, Any]) -> None:
        thread = self.thread
        window = self.settings.window()
        if failed.get("full") and window is not None:
            # Codex takes the context for full, whatever was counted.
            empty = dict.fromkeys(("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens"), 0)
            thread.total = thread.last = {**empty, "total_tokens": window}
            self._usage()
        self._error = self._error_v2(failed["message"], failed["info"])
        thread.emit("error", {"message": failed["message"], "info": failed["info"], "error": self._error})
