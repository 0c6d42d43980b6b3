"""What the cases about threads share: scripts, turns in the form of a thread's file, and tables."""

from __future__ import annotations

from typing import Any

from codex_replay.plugin import Server
from suites.app_server.dialect import has_events, these
from suites.app_server.expected import text
from suites.app_server.turns import asked_upstream, open_thread, run, texts

NOBODY = "00000000-0000-7000-8000-000000000000"
REFUSED = -32600


def says(*words: str) -> list[dict[str, Any]]:
    """Return a script with one turn for each given text."""
    return [{"items": [text(each, id=f"msg_{n}")]} for n, each in enumerate(words, 1)]


def turn(number: int, asked: str, answered: str) -> dict[str, Any]:
    """Return a turn in the form of the thread's file, in which ids are counted from the beginning of the thread."""
    content = [{"type": "text", "text": asked, "text_elements": []}]
    items = [
        {"type": "userMessage", "id": f"item-{2 * number - 1}", "content": content},
        {"type": "agentMessage", "id": f"item-{2 * number}", "text": answered},
    ]
    return {"id": f"turn-{number}", "items": items, "status": "completed", "error": None}


ONE, TWO = turn(1, "first", "One"), turn(2, "second", "Two")


def stored(server: Server, *turns: dict[str, Any]) -> Any:
    """Return turns in the form of thread/read, with the ids of the thread's file; later versions use the ids of the frames."""
    if has_events(server):
        return list(turns)
    bare = [{key: value for key, value in each.items() if key != "id"} for each in turns]
    items = [[{key: value for key, value in item.items() if key != "id"} for item in each["items"]] for each in turns]
    return these(server, [{**each, "items": inner} for each, inner in zip(bare, items, strict=True)])


def two_turns(server: Server, **settings: Any) -> str:
    """Start a thread and run two turns; return its id."""
    thread = open_thread(server, **settings)
    run(server, thread, "first")
    run(server, thread, "second")
    return thread


#: name -> (params of thread/list, how many of the two threads are listed)
FILTERS: dict[str, tuple[dict[str, Any], int]] = {
    "archived": ({"archived": True}, 0),
    "not-archived": ({"archived": False}, 1),
    "created": ({"sortKey": "created_at"}, 1),
    "updated": ({"sortKey": "updated_at"}, 1),
    "provider": ({"modelProviders": ["mock"]}, 1),
    "other-provider": ({"modelProviders": ["openai"]}, 0),
    "any-provider": ({"modelProviders": []}, 1),
    "source": ({"sourceKinds": ["vscode"]}, 1),
    "other-source": ({"sourceKinds": ["cli", "exec"]}, 0),
}


def must_refuse(server: Server, method: str, params: dict[str, Any], message: str) -> None:
    """Send a request, and check that the server refuses it with the given message."""
    assert server.request_error(method, params) == {"code": REFUSED, "message": message}


def must_ask(server: Server, before: int, expected: list[list[tuple[str, str]]]) -> None:
    """On a live server, check the messages in each request to the model after the first `before` requests."""
    assert [texts(given) for given in asked_upstream(server)[before:]] in ([], expected)


def settings(opened: dict[str, Any]) -> tuple[Any, ...]:
    """Return the settings in force from the response of a request that opens a thread."""
    return opened["model"], opened["approvalPolicy"], opened["sandbox"]["type"], opened["reasoningEffort"]


#: Whether thread/rollback drops the last turns; otherwise thread/revert drops a turn and those after it.
ROLLBACK = {"0.0.0": True, "0.169.0": False}


def drop(server: Server, thread: str, turns: int, started: list[str]) -> tuple[str, dict[str, Any]]:
    """Return the method and the params of the request that removes the last `turns` turns of a thread."""
    if server.by_version(ROLLBACK):
        return "thread/rollback", {"threadId": thread, "numTurns": turns}
    return "thread/revert", {"threadId": thread, "beforeTurnId": started[-turns]}


#: name -> (method, further params, the error's message about the thread {id})
NO_SUCH_THREAD = {
    "read": ("thread/read", {}, "thread not loaded: {id}"),
    "resume": ("thread/resume", {}, "no rollout found for thread id {id}"),
    "fork": ("thread/fork", {}, "no rollout found for thread id {id}"),
    "archive": ("thread/archive", {}, "no rollout found for thread id {id}"),
    "unarchive": ("thread/unarchive", {}, "no archived rollout found for thread id {id}"),
    "rollback": ("thread/rollback", {"numTurns": 1}, "thread not found: {id}"),
}
#: The rows of a version that has another method.
NO_SUCH_ROLLBACK: dict[str, dict[str, tuple[str, dict[str, Any], str]]] = {
    "0.0.0": {},
    "0.169.0": {"rollback": ("thread/revert", {"beforeTurnId": "x"}, "thread not found: {id}")},
}
