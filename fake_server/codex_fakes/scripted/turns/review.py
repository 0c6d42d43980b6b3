"""Run a review (review/start): a turn in which another agent, the reviewer, reviews changes.

The order and the texts of the frames come from recordings.

The reviewer is an agent with a separate conversation. The client gets a part of the reviewer's conversation: the beginning (the
id, the prompt), the calls and the end, but no deltas and no token counts. If the reviewer's text is JSON, it is parsed; otherwise
it is used unchanged. A review against a branch needs the common commit of two branches, which the script contains
(`git.mergeBase`).
"""

from __future__ import annotations

from time import time

from codex_fakes.scripted.state.ids import uuid4, uuid7
from codex_fakes.scripted.state.settings import beginning
from codex_fakes.scripted.state.waits import Pause
from codex_fakes.scripted.turns.input import take_preview, user_history, user_values
from codex_fakes.scripted.turns.request import message
from codex_fakes.scripted.turns.turn import Turn
from codex_replay.core.wire.json_text import NotJson, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from codex_fakes.scripted.state.model import Model
    from codex_fakes.scripted.state.thread import Thread
    from codex_fakes.scripted.state.waits import Ticket

    Run = Generator[Any, None, None]

#: The parts of the reviewer's conversation that the client does not get.
_HIDDEN = ("usage", "agent-message-delta", "agent-message-completed")


class _Inner:
    """The reviewer's conversation: a separate thread, whose events go to the reviewed thread."""

    def __init__(self, thread: Thread) -> None:
        self._thread = thread
        self.id = uuid7(time())
        self.history = beginning(thread.loaded_with)
        self.steered: list[Any] = []
        self.dynamic_tools: list[Any] = []
        self.total: dict[str, int] | None = None
        self.last: dict[str, int] | None = None
        self.limits = None
        self._submissions = 0
        self.review = ""  # the turn of the review
        self._words: dict[str, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._thread, name)

    def turn_id(self) -> str:
        """Return the number of the next submission in the reviewer's conversation, or a uuid in versions after 0.92.

        Replies of the client count in the reviewed thread instead.
        """
        if self._thread.clock:
            return uuid7(time())
        self._submissions += 1
        return str(self._submissions)

    def set_usage(self, total: dict[str, int], last: dict[str, int], window: int | None) -> None:
        """Store the token usage of the reviewer's conversation, which is not reported to the client."""
        self.total, self.last = total, last

    def emit(self, name: str, values: dict[str, Any] | None = None, ticket: Ticket | None = None) -> None:
        """Send an event to the reviewed thread if the client may see it."""
        if name == "agent-message-completed":
            # The last message is the review; an earlier one is sent when the next one comes.
            if self._words is not None:
                self._thread.emit("agent-message-plain", self._words)
            self._words = values
        if name.endswith(("-approval", "-declined")):  # the client sees the review's turn in place of the call
            self._thread.emit(name, {**(values or {}), "call": self.review}, ticket)
        elif name not in _HIDDEN:
            report = {**(values or {}), "inner": (self.id, "0")}
            self._thread.emit(name, report, ticket)
            if name + "-again" in self._thread.out.table["frames"]:
                self._thread.emit(name + "-again", report)  # an item with a plain event is sent by both, twice


class Review(Turn):
    """One review, from entered_review_mode to turn/completed."""

    kind = "review"

    def __init__(
        self, thread: Thread, model: Model, table: dict[str, Any], target: dict[str, Any], prompt: str, hint: str
    ) -> None:
        inner: Any = _Inner(thread)
        items = [{"type": "text", "text": prompt, "text_elements": []}]
        super().__init__(inner, model, table, items, None)
        self.id = inner.review = thread.turn_id()
        self.outer = thread
        config = thread.settings.config
        # The reviewer has the model of the last turn, and the settings that the thread had before the turns changed them.
        self.settings = thread.loaded_with.copy()
        self.settings.model = config.get("review_model") or thread.settings.model
        self.settings.effort = config.get("model_reasoning_effort")
        self.settings.summary = config.get("model_reasoning_summary")
        self._target, self._hint = target, hint
        self._words: dict[str, Any] | None = None  # the reviewer's last message

    def run(self) -> Run:
        """Run the review to its end."""
        thread = self.outer
        if thread.clock:
            yield from self._run_later()
            return
        asked = {"type": "userMessage", "content": user_values(self._items)["contentV2"]}
        self._shown["items"].append(asked)
        thread.turns += [{"items": [asked], "status": "completed", "error": None}, self._shown]
        thread.emit("review-entered", {"target": self._target, "hint": self._hint})
        thread.open_raw(self.id)
        thread.emit("mcp-startup-complete")
        thread.emit("task-started", {"window": thread.settings.window()})
        values = {"item": uuid4(), **user_values(self._items)}
        self.thread.history.append(user_history(self._items))
        thread.raw(self.thread.history[-1])
        self.thread.emit("user-message", values)
        yield Pause()
        yield from self._samplings()
        output = None if self._error is not None else review_output(self._last_message)
        sentences = self.table["sentences"]
        self._exit(
            output, rendered(output, sentences["review-failed"]), sentences["review-interrupted"] if output is None else None
        )
        self._complete(None)

    def _run_later(self) -> Run:
        """Run the review as versions after 0.92 do: its turn begins as a turn of the reviewer, which never ends."""
        thread = self.outer
        begins = {"begins": len(thread.history), "startedAt": int(self._begun), "review": True}
        shape = {**self.table["shapes"]["turn"], "id": self.shown_id, "rootTurnId": self.id, "itemsView": "full"}
        shown = {**shape, "status": "interrupted", "startedAt": int(self._begun)}
        self._shown |= begins
        thread.turns += [{"items": [], **begins, "shown": shown, "usage": [thread.total, thread.last]}, self._shown]
        self.warn_of_model()
        thread.emit("review-entered", {"hint": self._hint, "item": thread.item_id()})
        self.warn_of_model()
        yield from thread.out.gap("begin")
        self.begun = True
        thread.emit("turn-started", {"turn": self.shown_id, "startedAt": int(self._begun)})
        asked = user_history(self._items)
        self.thread.history.append(asked)
        take_preview(thread, asked)
        thread.emit("user-message", {"item": thread.item_id(), **user_values(self._items, True)})
        yield Pause()
        yield from self._samplings()
        words = (self._last_message or "").strip() and self._last_message  # a blank text counts as no text
        output = None if self._error is not None else review_output(words or None)
        failed, interrupted = self.sentence("review-failed"), self.sentence("review-interrupted")
        self._exit(output, rendered(output, failed), interrupted if output is None else None)
        self._split()
        self._complete(None)

    def _split(self) -> None:
        """Divide the kept items: those of the reviewer belong to the turn of the reviewer; its messages are not kept."""
        own = ("enteredReviewMode", "exitedReviewMode", "agentMessage")
        full = self._shown.get("full", [])
        self.outer.turns[-2]["shown"]["items"] = [item for item in full if item["type"] not in own]
        self._shown["full"] = [item for item in full if item["type"] in own]

    def list_item(self, name: str, values: dict[str, Any]) -> None:
        """Add the reviewer's items that the client gets: each reasoning twice, and each message when the next message comes."""
        if name == "reasoning-completed":
            super().list_item(name, {key: values[key] * 2 for key in ("summary", "shown")})
        elif name == "agent-message-completed":
            if self._words is not None:
                super().list_item(name, self._words)
            self._words = values

    def _exit(self, output: Any, text: str, said: str | None = None) -> None:
        interrupted, said = said is not None, text if said is None else said
        content = [{"type": "output_text", "text": said}]
        answer = {"type": "message", "role": "assistant", "content": content}
        from codex_fakes.scripted.state.raw import review_told

        report = review_told(told_model(output), interrupted, self.outer.clock)
        self.outer.history.append(report)
        self.outer.raw(report)
        self.outer.emit("review-exited", {"output": output, "text": text, "item": self.outer.item_id()})
        self.outer.raw(answer)
        self.outer.emit("review-said", {"text": said, "item": f"msg_{self.outer.item_id()}"})
        self._shown["items"].append({"type": "agentMessage", "text": said})
        self.outer.history.append(answer)

    def abort(self) -> None:
        """End the review as an interrupt does."""
        sentences = self.table["sentences"]
        self._exit(None, sentences["review-failed"], sentences["review-interrupted"])
        self._shown["status"] = "interrupted"
        note = message("user", "input_text", self.sentence("turn-aborted"))
        self.outer.history.append(note)
        if self.outer.clock:
            self._split()
        times = self._times("interrupted")
        self.outer.emit("turn-aborted", times)
        self.outer.answer_interrupts()
        self.outer.emit("turn-interrupted", times)


def review_output(text: str | None) -> dict[str, Any] | None:
    """Return the reviewer's text in the form for the event, or None if the reviewer sent no text."""
    if text is None:
        return None
    empty = {"findings": [], "overall_correctness": "", "overall_explanation": text, "overall_confidence_score": 0.0}
    for part in (text, text[text.find("{") : text.rfind("}") + 1]):
        try:
            given = loads(part.encode("utf-8", "surrogatepass"))
        except NotJson:
            continue
        if type(given) is dict and empty.keys() <= given.keys() and _is_review(given):
            score = single(given["overall_confidence_score"])
            findings = [_comment(each) for each in given["findings"]]
            return {**{name: given[name] for name in empty}, "findings": findings, "overall_confidence_score": score}
    return empty


def _comment(given: dict[str, Any]) -> dict[str, Any]:
    """Return a finding of the review with the members of the real server, in the order of the real server."""
    place = given["code_location"]
    lines = {name: place["line_range"][name] for name in ("start", "end")}
    return {
        **{name: given[name] for name in ("title", "body")},
        "confidence_score": single(given["confidence_score"]),
        "priority": given["priority"],
        "code_location": {"absolute_file_path": place["absolute_file_path"], "line_range": lines},
    }


def single(number: float) -> float | None:
    """Return a score of a review in single precision, as the real server stores it. A score that is too large becomes null."""
    from struct import pack, unpack

    try:
        found: float = unpack("<f", pack("<f", number))[0]
    except OverflowError:
        return None
    return found


def _is_review(given: dict[str, Any]) -> bool:
    """Return True if each member of the reviewer's JSON has the type that the real server expects.

    If a member has a wrong type, the reviewer's text is used unchanged.
    """
    texts = [given["overall_correctness"], given["overall_explanation"]]
    if type(given["overall_confidence_score"]) not in (int, float) or type(given["findings"]) is not list:
        return False
    for finding in given["findings"]:
        try:
            place = finding["code_location"]
            numbers = (place["line_range"]["start"], place["line_range"]["end"], finding["priority"])
            texts += [finding["title"], finding["body"], place["absolute_file_path"]]
        except (TypeError, KeyError):
            return False
        if type(finding.get("confidence_score")) not in (int, float):
            return False
        if any(type(number) is not int for number in numbers):
            return False
    return all(type(text) is str for text in texts)


def told_model(output: dict[str, Any] | None) -> str:
    """Return a review in the form for the model of the reviewed thread; blanks at its end stay."""
    if output is None:
        return ""
    block = f"\n\n{_block(output['findings'])}" if output["findings"] else ""
    return f"{output['overall_explanation'].strip()}{block}"


def _block(findings: list[dict[str, Any]]) -> str:
    lines = ["Review comment:" if len(findings) == 1 else "Full review comments:"]
    for finding in findings:
        place = finding["code_location"]
        where = f"{place['absolute_file_path']}:{place['line_range']['start']}-{place['line_range']['end']}"
        lines += ["", f"- {finding['title']} \u2014 {where}", *(f"  {line}" for line in finding["body"].splitlines())]
    return "\n".join(lines)


def rendered(output: dict[str, Any] | None, failed: str) -> str:
    """Return a review as the text of the item exitedReviewMode."""
    if output is None:
        return failed
    parts = [output["overall_explanation"].strip()] if output["overall_explanation"].strip() else []
    if output["findings"]:
        parts.append(_block(output["findings"]).strip())
    return "\n\n".join(parts) or failed
