"""The messages from a server to an editor, as steps of the byte server, and functions that read the editor's messages.

The messages have camelCase keys, as in recordings of the real server; `snake` converts them to the form of
docs/contract/editor.md. All values are written by hand from recordings and docs/contract/editor.md, and not copied from a
schema or from the fake.
"""

from __future__ import annotations

import re
from typing import Any

from codex_replay.plugin.editor_client.fixture import Editor, SubjectFailure
from suites.editor_client.exact import APPROVALS, SWITCHED_OFF

DRIVER = "docs/editor-client.md"

THREAD, TURN = "thr_123", "turn_456"
IDS = {"threadId": THREAD, "turnId": TURN}
#: Some characters come twice, so that a delta of one character may equal the delta before it.
TEXT = 'Grüße, 世界!! 😀\n\nTwo lines,\tone tab, "quotes" and a \\ backslash.'

Step = dict[str, Any]


def notification(method: str, **params: Any) -> Step:
    """Return the step that sends a notification of the current turn."""
    return {"send": {"method": method, "params": {**IDS, **params}}}


def delta(text: str, item: str = "agent1") -> Step:
    """Return the step that sends one more delta of the answer."""
    return notification("item/agentMessage/delta", itemId=item, delta=text)


def completed(status: str = "completed", message: str | None = None, turn: str = TURN) -> Step:
    """Return the step that ends the turn."""
    error = None if message is None else {"message": message, "codexErrorInfo": "other", "additionalDetails": None}
    ended: Step = {"id": turn, "items": [], "status": status, "error": error}
    return {"send": {"method": "turn/completed", "params": {"threadId": THREAD, "turn": ended}}}


def item_completed(**item: Any) -> Step:
    """Return the step that completes an item."""
    return notification("item/completed", item=item)


def asks(number: Any, kind: str = "command", **params: Any) -> Step:
    """Return the step that requests an approval."""
    item = {"itemId": "cmd1" if kind == "command" else "edit1", "reason": None}
    return {"send": {"id": number, "method": APPROVALS[kind], "params": {**IDS, **item, **params}}}


def handshake() -> list[Step]:
    """Return the steps by which the byte server answers initialize."""
    return [{"expect": "initialize"}, {"reply": {"userAgent": "codex/0.92.0 (a byte server)"}}]


def thread(name: str = THREAD) -> list[Step]:
    """Return the steps by which the byte server answers thread/start."""
    return [{"expect": "thread/start"}, {"reply": {"thread": {"id": name, "turns": []}}}]


def turn(*steps: Step, name: str = TURN, end: bool = True) -> list[Step]:
    """Return the steps by which the byte server answers turn/start, sends the messages in `steps` with the id of the turn, and
    ends the turn.
    """
    begun: Step = {"id": name, "items": [], "status": "inProgress", "error": None}
    opening: list[Step] = [{"expect": "turn/start"}, {"reply": {"turn": begun}}, started(name)]
    return [*opening, *(_of_turn(step, name) for step in steps), *([completed(turn=name)] if end else [])]


def _of_turn(step: Step, name: str) -> Step:
    """Return a step with the id of a turn added to its params, because an editor may ignore notifications of another turn."""
    message = step.get("send")
    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(params, dict) or params.get("turnId") != TURN:
        return step
    return {**step, "send": {**message, "params": {**params, "turnId": name}}}


def started(name: str = TURN) -> Step:
    """Return the step that starts a turn."""
    begun: Step = {"id": name, "items": [], "status": "inProgress", "error": None}
    return {"send": {"method": "turn/started", "params": {"threadId": THREAD, "turn": begun}}}


def conversation(*steps: Step, end: bool = True) -> list[Step]:
    """Return the steps of a complete conversation with one turn, which runs `steps`."""
    return [*handshake(), *thread(), *turn(*steps, end=end)]


def more() -> list[Step]:
    """Return the steps of the additional turn that `settle` runs."""
    return turn(name="turn_999")


def settle(editor: Editor) -> None:
    """Run one additional turn with the steps of `more`, after which the ledger has every earlier message of the editor.

    A case can then check that the editor did not send a certain message, because the server reads in order.
    """
    __tracebackhide__ = True
    editor.turn("One more.")


def snake(steps: list[Step]) -> list[Step]:
    """Return the given steps with all fields in snake_case."""
    return [
        {name: _snake(value) if name in ("send", "reply", "together") else value for name, value in step.items()}
        for step in steps
    ]


def _snake(value: Any) -> Any:
    if isinstance(value, dict):
        return {re.sub("[A-Z]", lambda m: "_" + m[0].lower(), key): _snake(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_snake(item) for item in value]
    return value


def names(messages: list[dict[str, Any]]) -> list[str]:
    """Return the methods of messages; "reply" for a message without a method."""
    return [str(message.get("method", "reply")) for message in messages]


def switched_off(editor: Editor) -> list[str]:
    """Return a sentence for each safety setting of the user that the editor has disabled."""
    found = []
    for message in (*editor.requests("thread/start"), *editor.requests("turn/start")):
        for path, value in SWITCHED_OFF.items():
            given: Any = message.get("params")
            for key in path.split("."):
                given = given.get(key) if isinstance(given, dict) else None
            if given == value:
                what = "approvals" if "approval" in path.lower() else "the sandbox"
                found.append(f"The editor's {message['method']} disables {what}: it sends {path} {value!r}")
    return found


def only_answer(editor: Editor) -> dict[str, Any]:
    """Return the editor's only reply to a request of the server; fail if the number of replies is not 1."""
    __tracebackhide__ = True
    answers = editor.answers()
    assert len(answers) == 1, f"The editor sent {len(answers)} replies to one request of the server: {answers}"
    return answers[0]


def approval_of(editor: Editor) -> dict[str, Any]:
    """Return the approval that a complete Codex requests; fail immediately if the editor has disabled approvals.

    The configuration in the case requests an approval for every command, but the editor's thread/start and turn/start can
    override it.
    """
    __tracebackhide__ = True
    editor.wait_sent("turn/start")
    if off := [sentence for sentence in switched_off(editor) if "approvals" in sentence]:
        raise SubjectFailure(editor.report_on(f"{off[0]}, so the server requests no approval from the user"))
    return editor.wait("approval")
