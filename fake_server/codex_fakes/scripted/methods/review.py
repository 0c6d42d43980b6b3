"""Handle review/start and thread/compact/start, which start turns without a message of the user.

For a review, choose its kind, its thread and its texts. The module `scripted.turns.review` runs the review.
"""

from __future__ import annotations

from codex_fakes.scripted.methods.both import as_v2, copy, settings_again, submit
from codex_fakes.scripted.state.refused import Refused
from codex_fakes.scripted.turns.review import Review
from codex_replay.protocol.refusals import type_name
from codex_replay.protocol.turn.frames import error_v2, fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Method, Session
    from codex_fakes.scripted.state.thread import Thread


def review_start(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Start a review in the thread of the request, or in a new thread (detached).

    A review in a thread with a running turn replaces the turn.
    """
    target = params["target"]
    thread = session.thread(params["threadId"])
    row = _row(session, target)
    shown: dict[str, Any] = {"type": target["type"]}
    for name in row["needs"]:
        if name not in target:
            raise Refused(f"Invalid request: missing field `{name}`")
        shown[name] = target[name].strip()
        if not shown[name]:
            raise Refused(f"{name} must not be empty")
    if "sha" in shown:
        shown["title"] = (target.get("title") or "").strip() or None
    hint, prompt = texts(session, shown)
    if params.get("delivery") == "detached":
        # As it is begun with the server's own settings and in its place, whatever the thread had.
        thread = copy(session, thread, settings_again(session, thread, {"cwd": session.cwd}, "v2"))
        session.listen(thread, "v2")
        thread.emit("mcp-startup-complete")
        thread.emit("thread-started", {"threadObject": as_v2(session, thread)})
    review = Review(thread, session.model, session.table, shown, prompt or "", hint)
    content = [{"type": "text", "text": hint, "text_elements": []}]
    client = {"clientId": None} if thread.clock else {}
    item: dict[str, Any] = {"type": "userMessage", "id": review.id, **client, "content": content}
    turn = {"id": review.id, "items": [item], "status": "inProgress", "error": None}
    if thread.clock:
        item |= {"startedAtMs": None, "completedAtMs": None}
        turn, thread.written = {**session.table["shapes"]["turn"], **turn, "rootTurnId": None}, True
    session.answer(request, {"turn": turn, "reviewThreadId": thread.id})
    thread.announce("review-started", {"turnObject": turn})
    if prompt is None:
        # The turn of a review that cannot begin never ends, in the real server too.
        message = f'"{thread.settings.cwd}" is not a git repository'
        error = error_v2(session.table, message, "other")
        thread.stray = None if thread.clock else error  # in 0.92, the end of the next turn has it
        thread.emit("error", {"turn": review.id, "message": message, "info": "other", "error": error})
        return
    if thread.clock:
        _displace(thread)
    else:
        thread.replace()
    thread.begin(review)


def texts(session: Session, target: dict[str, Any]) -> tuple[str, str | None]:
    """Return the short text for the target of a review, and the prompt for the reviewer.

    The prompt is None if there is no repository to review.
    """
    row = session.table["reviews"][target["type"]]
    given = {**target, "short": target.get("sha", "")[:7]}
    form = "titled" if target.get("title") else "plain"
    hint = fill(row.get(f"hint-{form}", row["hint"]), given)
    base = session.model.git.get("mergeBase") or session.model.git.get("sha")
    lacks = row.get("git") and base is None
    return hint, None if lacks else fill(row.get(f"prompt-{form}", row["prompt"]), {**given, "base": base})


def _row(session: Session, target: Any) -> dict[str, Any]:
    """Return the row of the table for the kind of a review's target."""
    rows: dict[str, Any] = session.table["reviews"]
    if type(target) is not dict:
        expected = "internally tagged enum ReviewTarget"
        raise Refused(f"Invalid request: invalid type: {type_name(target)}, expected {expected}")
    kind = target.get("type")
    if kind is None:
        raise Refused("Invalid request: missing field `type`")
    if kind not in rows:
        names = ", ".join(f"`{name}`" for name in rows)
        raise Refused(f"Invalid request: unknown variant `{kind}`, expected one of {names}")
    found: dict[str, Any] = rows[kind]
    return found


def compact_start(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Replace the history of a thread by a summary of the model, in a turn that replaces a running turn."""
    thread = session.thread(params["threadId"])
    session.answer(request, {})
    _displace(thread)
    turn = submit(session, thread, [], None)
    turn.kind, thread.written = "compact", True
    thread.begin(turn)


def _displace(thread: Thread) -> None:
    """Interrupt the running turn, if one runs, for another turn. The model gets no note about this interrupt."""
    if thread.turn is not None:
        thread.interrupt()
        thread.history.pop()


METHODS: dict[str, Method] = {"review/start": review_start, "thread/compact/start": compact_start}
