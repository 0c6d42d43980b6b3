"""One turn of the scripted fake, from the user's input to turn/completed, in the order of the real binary.

`run` is a generator, which emits events and yields waits (`Ticket`, `Sleep`, `Gate`, `Pause`). Each request to the model is
one `Sampling`. The calls in a reply run one after another, and their outputs are the input of the next request, until a
reply has no calls. The order and the texts come from recordings (see turn.json and REAL-51 to REAL-80).
"""

from __future__ import annotations

from time import time

from codex_fakes.scripted.state.waits import Gate, Pause, Quiet, Sleep, SleepOrSteer
from codex_fakes.scripted.turns.calls import Aborted
from codex_fakes.scripted.turns.compaction import compact, is_full, old_model
from codex_fakes.scripted.turns.input import take_preview, user_history, user_values
from codex_fakes.scripted.turns.request import body_of, is_own, message
from codex_fakes.scripted.turns.tools import Tools
from codex_replay.protocol.turn.frames import NOTHING, add_usage, error_v2, failure, fill, usage_values
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
    """One turn of the scripted fake.

    `id` is the number of the submission that started the turn. `items` are the user's input items in the form of v2's
    turn/start.
    """

    kind = "turn"

    def __init__(self, thread: Thread, model: Model, table: dict[str, Any], items: list[dict[str, Any]], schema: Any) -> None:
        self.id = self.shown_id = thread.turn_id()
        self.thread = self.outer = thread  # in a review, the outer thread is the reviewed one
        self.settings = thread.settings  # overrides while it runs are for the next turn
        self.table = table
        self.schema = schema
        self.model = model
        self._items = items
        self._tools = Tools(thread, self, table)
        self._gates = 0  # the gates that the running reply has passed
        self._shown: dict[str, Any] = {"items": [], "status": "completed", "error": None}
        self._error: dict[str, Any] | None = None
        self._last_message: str | None = None
        self._begun, self.begun = time(), False
        self._heard = False  # whether the reply that is awaited has begun
        self._citations: Citations | None = None
        if "citation" in table:
            from codex_fakes.scripted.turns.citations import Citations

            self._citations = Citations(*table["citation"])
        self._late: bool = table["traits"].get("lateUsage", False)  # later versions report usage once the calls have run

    @property
    def _listed(self) -> dict[str, Any]:
        """Return the turn to which `thread/read` adds new items.

        If the thread was loaded again during the turn, return the latest turn of the new copy.
        """
        heir = self.thread.heir
        while heir is not None and heir.heir is not None:
            heir = heir.heir
        return self._shown if heir is None or not heir.turns else heir.turns[-1]

    def sentence(self, key: str, /, **values: Any) -> str:
        """Return a text of the real server, from "sentences" in turn.json of the Codex version."""
        text: str = fill(self.table["sentences"][key], values)
        return text

    def warn_of_model(self) -> None:
        """Send a warning if the version does not know the model. 0.92 sends none."""
        if self.thread.clock and not self.settings.abilities().get("known"):
            self.thread.emit("model-unknown", {"message": self.sentence("unknown-model", model=self.settings.model)})

    # -- the whole ----------------------------------------------------------------------------------------------------

    def run(self) -> Run:
        """Run the turn to its end."""
        thread = self.thread
        if thread.clock:
            yield from thread.out.gap("begin")  # until the turn has begun, the real server refuses to interrupt it
            self.begun = True
            thread.emit("turn-started", {"startedAt": int(self._begun)})
            self._shown |= {"begins": len(thread.history), "startedAt": int(self._begun)}
        thread.turns.append(self._shown)
        thread.out.delay_output("start")
        failed = (yield from compact(self, old)) if (old := old_model(self)) else None
        if not failed and (is_full(self) or self.kind == "compact"):
            failed = yield from compact(self)
        thread.emit("task-started", {"window": self.settings.window()})
        if self.kind == "turn":
            self._user_message()
        try:
            if self._late and failed:
                self.fail(failed)
            elif self.kind == "turn":
                yield Quiet()
                yield from self._samplings()
        except Aborted:
            self.abort()
            return
        self._error, thread.stray = self._error or thread.stray, None
        self._complete(self._last_message)

    def _complete(self, last_message: str | None) -> None:
        """Report the end of the turn. Errors are not kept, so thread/read shows the turn as completed."""
        self.outer.failed = self._error is not None
        status = "failed" if self.outer.failed else "completed"
        values = {"lastMessage": last_message, "status": status, "error": self._error}
        self.outer.emit("task-complete", {**values, **self._times(status)})

    def abort(self) -> None:
        """End the turn after an interrupt: calls without an output get an output, and the model's input gets a note."""
        thread = self.thread
        self._tools.abandon()
        thread.history.append(message("user", "input_text", self.sentence("turn-aborted")))
        if thread.clock:
            thread.raw(thread.history[-1])
        self._shown["status"] = "interrupted"
        times = self._times("interrupted")
        thread.emit("turn-aborted", times)
        thread.answer_interrupts()
        thread.failed = False
        thread.emit("turn-interrupted", times)
        if self._tools.undecided is not None:
            thread.emit("request-resolved", {"request": self._tools.undecided})

    def _times(self, status: str) -> dict[str, Any]:
        """Return the values that only versions after 0.92 report at the end of a turn.

        For a version after 0.92, also store the turn.
        """
        thread, now = self.outer, time()
        full = self._shown.get("full", [])
        texts = [item for item in full if item["type"] == "agentMessage" and item["text"].strip()]
        messages = texts if status == "completed" else []  # a turn that does not complete shows none
        times = {"startedAt": int(self._begun), "completedAt": int(now), "durationMs": int((now - self._begun) * 1000)}
        if thread.clock:
            error = self._error if status == "failed" else None
            ended = {"items": full, "itemsView": "full", "status": status, "error": error, **times}
            if texts or status == "failed":
                thread.revision, thread.unread = thread.item_id(), thread.unread or self.id
            self._shown["shown"] = {**self.table["shapes"]["turn"], "id": self.id, "rootTurnId": self.id, **ended}
            self._shown["usage"] = [thread.total, thread.last]
        return {
            **times,
            "items": messages[-1:],
            "itemsView": "summary" if messages else "notLoaded",
            "completed": True if status == "completed" else None,
            "readState": thread.read_state if thread.reads and (texts or status == "failed") and not thread.ephemeral else None,
        }

    def _user_message(self) -> None:
        thread = self.thread
        if not self._items and thread.clock:
            return  # an empty input is a turn without a message
        values = user_values(self._items, thread.clock)
        thread.history.append(user_history(self._items))
        thread.raw(thread.history[-1])
        # After a rollback of an empty thread, the next input is still the first one.
        begins = all(event["type"] in ("token_count", "thread_rolled_back") for event in thread.said)
        if thread.clock:
            take_preview(thread, thread.history[-1])
        elif begins and not is_own(thread.history[-1]["content"]):
            # Only the first input counts: if it is a review, or looks like Codex's own, the thread is not listed.
            thread.asked = True
            if not thread.preview:  # the preview of a history that the client gave stays
                thread.preview = values["preview"]
                thread.before += sum(2 if item.get("opens") else 1 for item in thread.history[:-1])
        thread.model = self.settings.model
        self._listed["items"].append({"type": "userMessage", "content": values["kept"]})
        thread.emit("user-message", {"item": thread.item_id(), **values})

    def _samplings(self) -> Run:
        thread, asked = self.thread, False
        while True:
            # Before the first request, too: the real server joins a message that is already there into it.
            steered, thread.steered = thread.steered, []
            self._gates = 0 if asked else -len(steered)  # input that came before the model was asked opens a gate, too
            asked = True
            inputs = [user_history(items) for items in steered]
            thread.history += inputs
            thread.raw(*inputs)
            for items in steered:
                thread.emit("steered-message", {"item": thread.item_id(), **user_values(items, thread.clock)})
            sampling = Sampling(self.table["model"], self.table.get("searches"))
            yield from self._sample(sampling)
            if self._error is not None:
                return
            if diff := self._tools.diff.text():
                thread.emit("turn-diff", {"diff": diff})
            if not self._tools.ran and not thread.steered:
                self._last_message = sampling.last_message
                return
            if is_full(self) and (failed := (yield from compact(self))) and self._late:
                self.fail(failed)
                return

    def _gate(self) -> Gate:
        """Return the wait at a gate: each gate of a reply needs input that no earlier gate has used."""
        self._gates += 1
        return Gate(self.thread.steered, self._gates - 1)

    # -- one request to the model -------------------------------------------------------------------------------------

    def _sample(self, sampling: Sampling) -> Run:
        """Send a request to the model until a reply is complete.

        `sampling` is the last attempt. If no retry is left, the turn gets an error.
        """
        requests, streams = self.settings.retries()
        requested = streamed = 0
        thread = self.thread
        self._tools.ran = 0
        body = body_of(thread, self.settings, self.schema, self.kind)  # what a failed attempt has said is not in the next attempt
        if (missing := self.settings.missing_key()) is not None:
            self.fail(failure(self.table["errors"], missing))
            return
        while True:
            reply = self.model.ask(body, {"thread": thread.id, "turn": self.id}, self.settings.url())
            yield from thread.out.gap("model")
            # Later versions can be steered before the answer begins.
            joined = reply.before if self._late and reply.failure is None else []
            for what, how in reply.before if not joined else ():
                yield Sleep(how / 1000) if what == "wait" else self._gate()
            if reply.failure is None:
                self.take_limits(reply.limits)
                yield from self._stream([*joined, *reply.acts], reply.results, sampling, len(joined))
                if sampling.end is not None and ("completed" in sampling.end or "steered" in sampling.end):
                    return
            cause = reply.failure or {"url": self.settings.url(), **(sampling.end or {})}
            failed = failure(self.table["errors"], {"text": "", **cause})
            if "request" in failed["retry"] and requested < requests:
                requested += 1
                continue
            requested = 0
            if reply.log is not None and self.model.log is not None:
                self.model.log(reply.log)
            if failed.get("limited"):
                self.take_limits(reply.limits)
            if "stream" in failed["retry"] and streamed < streams:
                streamed += 1
                self.reconnecting(failed, streamed, streams)
                sampling.__init__(self.table["model"], self.table.get("searches"))  # type: ignore[misc]
                yield Pause()
                continue
            self.fail(failed)
            return

    def _stream(self, acts: list[Any], results: dict[str, Any], sampling: Sampling, before: int) -> Run:
        """Process one reply of the model; the first `before` acts are waits until the reply begins.

        Versions after 0.92 report the token usage after each reply that has begun, even after an incomplete one.
        """
        self._heard = False
        try:
            yield from self._reply(acts, results, sampling, before)
        except GeneratorExit:  # the turn is interrupted
            if self._late:
                self._tools.abandon()
            raise
        finally:
            if self._late and self._heard:
                self.report_usage()

    def _reply(self, acts: list[Any], results: dict[str, Any], sampling: Sampling, before: int) -> Run:
        thread = self.thread
        self._tools.results = results
        done, silent = 0, 0.0
        for number, act in enumerate(acts):
            self._heard = number >= before
            if type(act) is not tuple:
                silent = 0.0
                happenings = sampling.receive(act)
                for name, values in happenings if self._citations is None else self._citations.pass_on(happenings):
                    if name == "reasoning-completed":
                        raw = self.settings.config.get("show_raw_agent_reasoning")
                        values["shown"] = values["content"] if raw else []
                    elif name.startswith("agent-message") and not values["item"]:
                        values["item"] = thread.item_id()
                    thread.emit(name, values)
                    self.list_item(name, values)
                thread.history += [item for item in sampling.history[done:] if item["type"] != "other"]
                thread.raw(*(sampling.items if thread.clock else sampling.history)[done:])
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
            if what != "wait":
                yield self._gate()
            elif self._late:
                yield SleepOrSteer(how / 1000, thread.steered)
            else:
                patience = self.settings.idle_seconds() - silent
                silent += how / 1000
                yield Sleep(min(how / 1000, patience))
                if how / 1000 > patience:
                    sampling.close("idle")
                    break
            if self._late and thread.steered:  # the reply is broken off, and the next request has the input
                sampling.end = {"steered": True}
                break
        sampling.close()
        ended = sampling.end is not None and "completed" in sampling.end
        if sampling.usage is not None:
            # an incomplete reply counts, and is not the last
            last = sampling.usage if ended else dict.fromkeys(sampling.usage, 0)
            thread.set_usage(add_usage(thread.total, sampling.usage), last, self.settings.window())
        if ended:
            thread.raw_response(sampling.response, sampling.usage)
        if ended and not self._late:
            self.report_usage()
        if ended or (sampling.end is not None and "steered" in sampling.end):
            yield from self._tools.run(sampling, ended=True)
        else:
            self._tools.drop(sampling)

    def list_item(self, name: str, values: dict[str, Any]) -> None:
        """Add a completed item to the turn for `thread/read`.

        Empty texts are omitted. Consecutive reasoning items become one item.
        """
        items = self._listed["items"]
        if name == "agent-message-completed":
            items += [{"type": "agentMessage", "text": text} for text in values["texts"] if text]
        elif name == "reasoning-completed":
            summary, content = [[text for text in values[key] if text] for key in ("summary", "shown")]
            if items and items[-1]["type"] == "reasoning":
                last = items[-1]
                items[-1] = {**last, "summary": last["summary"] + summary, "content": last["content"] + content}
            elif summary or content:
                items.append({"type": "reasoning", "summary": summary, "content": content})

    def take_limits(self, given: dict[str, Any]) -> None:
        """Store the rate limits of an answer, and report them."""
        thread = self.thread
        if given or thread.limits:
            from codex_replay.protocol.turn.limits import joined

            given = joined(thread.limits, given)
        thread.limits = given
        if not self._late:
            self.report_usage()

    def report_usage(self) -> None:
        """Report the token counts and the rate limits."""
        thread = self.thread
        names = self.table["shapes"]["tokens"] if thread.clock else None
        self._shown["counted"] = thread.total is not None
        thread.emit("usage", usage_values(thread.total, thread.last, thread.window, thread.limits, names))

    # -- what goes wrong ----------------------------------------------------------------------------------------------

    def reconnecting(self, failed: dict[str, Any], n: int, limit: int) -> None:
        """Report to the client that the stream of the model is requested again."""
        message = self.sentence("reconnecting", n=n, limit=limit)
        info = {"response_stream_disconnected": {"http_status_code": failed.get("streamStatus")}}
        values = {"message": message, "info": info, "details": failed["message"]}
        self.thread.emit("stream-error", {**values, "error": error_v2(self.table, message, info, failed["message"])})

    def fail(self, failed: dict[str, Any], ends: bool = True) -> None:
        """Report an error of the turn to the client.

        If the error does not end the turn, the turn continues and reports the error again at its end.
        """
        thread = self.thread
        window = self.settings.window()
        if failed.get("full") and window is not None:
            # Codex takes the context for full, whatever was counted.
            before = (thread.total or NOTHING)["total_tokens"]
            thread.total = {**NOTHING, "total_tokens": window}
            thread.last, thread.window = {**NOTHING, "total_tokens": max(0, window - before)}, window
            self.report_usage()
        error = error_v2(self.table, failed["message"], failed["info"])
        if ends:
            self._error = error
        else:
            thread.stray = error
        thread.emit("error", {"message": failed["message"], "info": failed["info"], "error": error})
