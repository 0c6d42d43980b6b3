"""Functions that the modules of this suite share: they start threads and turns, and select received frames."""

from __future__ import annotations

import re
from typing import Any

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import CHUNKS, COUNTED_FIRST, EXPERIMENTAL, has_events
from suites.app_server.expected import all_of

#: A thread in which every command except the harmless ones needs an approval, and an approved command may do anything.
ASKS: dict[str, Any] = {"approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
#: A thread in which commands need no approval and may do anything.
FREE: dict[str, Any] = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
#: The reason why a recording shows only one of the two correct ways to interrupt a call that waits for an answer.
ABANDONED = "The end of the call, as failed, may or may not still come before the abort."
#: The model's silence, for a server that sends it the output of such a call before the turn ends.
UNHEARD: dict[str, Any] = {"match": {"tool": ""}, "items": [{"type": "wait", "ms": 10_000}, "Too late."], "times": "always"}

#: The reason why a recording shows one of many correct numbers.
ESTIMATE = "after a cut the server estimates the tokens from the length of the remaining text, which contains directories"


def open_thread(server: Server, *, experimental: bool = False, **settings: Any) -> str:
    """Do the handshake and start a thread; return the id of the thread.

    `experimental` declares the capability for the experimental API, which later requests of the case need.
    """
    server.initialize(experimental=experimental or not EXPERIMENTAL.isdisjoint(settings))
    return another_thread(server, **settings)


def another_thread(server: Server, **settings: Any) -> str:
    """Start a thread on an initialized server; return its id."""
    thread: str = server.request("thread/start", {"cwd": server.work, **settings})["thread"]["id"]
    server.notification("thread/started")
    return thread


def start(server: Server, thread: str, words: str = "Go on.", **params: Any) -> Any:
    """Start a turn; return the turn from the response to turn/start."""
    given = {"threadId": thread, "input": [{"type": "text", "text": words}], **params}
    return server.request("turn/start", given)["turn"]


def ended(server: Server, thread: str, turn: str | None = None) -> Any:
    """Wait for the end of a turn (default: the next turn of the thread); return the turn."""
    while True:
        found = server.notification("turn/completed", threadId=thread)["turn"]
        if turn in (None, found["id"]):
            return found


def run(server: Server, thread: str, words: str = "Go on.", **params: Any) -> Any:
    """Start a turn and wait for its end; return the turn."""
    start(server, thread, words, **params)
    return ended(server, thread)


def conversation(server: Server, **settings: Any) -> str:
    """Do the handshake, start a v1 conversation and listen to it; return its id."""
    server.initialize()
    return another_conversation(server, **settings)


def another_conversation(server: Server, **settings: Any) -> str:
    """Start a v1 conversation on an initialized server and listen to it; return its id."""
    found: str = server.request("newConversation", {"cwd": server.work, **settings})["conversationId"]
    server.request("addConversationListener", {"conversationId": found})
    return found


def v1_items(words: str) -> list[dict[str, Any]]:
    """Return a text of the user as v1 items."""
    return [{"type": "text", "data": {"text": words}}]


def send_words(server: Server, conversation: str, words: str = "Go on.") -> None:
    """Send a v1 user message."""
    assert server.request("sendUserMessage", {"conversationId": conversation, "items": v1_items(words)}) == {}


def run_v1(server: Server, conversation: str, words: str = "Go on.") -> Any:
    """Send a v1 user message and wait for the end of its turn; return the turn."""
    send_words(server, conversation, words)
    return ended(server, conversation)


def wait_item(server: Server, type: str, which: str = "completed") -> dict[str, Any]:  # noqa: A002 - the protocol's name
    """Wait until the next item of the given type has started or completed; return the item."""

    def matches(message: Any) -> bool:
        item = message.get("params", {}).get("item", {}) if message.get("method") == f"item/{which}" else {}
        return bool(item.get("type") == type)

    found: dict[str, Any] = server.wait(f"item/{which} of a {type}", matches)["params"]["item"]
    return found


def wait_usage(server: Server) -> None:
    """If the version sends the token usage of an answer before the calls of the answer, wait for the usage."""
    if server.by_version(COUNTED_FIRST):
        server.notification("thread/tokenUsage/updated")


def prompt_id(server: Server, turn: str) -> str:
    """Return the id of the item that repeats the user's message at the start of a turn."""
    found: str = next(p["item"]["id"] for p in all_of(server, "item/started") if p["turnId"] == turn)
    return found


def last_words(server: Server) -> list[str | None]:
    """Return the model's last message of each turn that was not interrupted."""
    if has_events(server):
        return [params["msg"]["last_agent_message"] for params in all_of(server, "codex/event/task_complete")]
    messages = [params for params in all_of(server, "item/completed") if params["item"]["type"] == "agentMessage"]
    words = {params["turnId"]: params["item"]["text"] for params in messages}
    ended = [params["turn"] for params in all_of(server, "turn/completed")]
    return [words.get(turn["id"]) for turn in ended if turn["status"] != "interrupted"]


def wait_message(server: Server) -> None:
    """Wait until the model's next message is complete."""
    if has_events(server):
        server.notification("codex/event/agent_message")
    else:
        wait_item(server, "agentMessage")


def items_of(server: Server, type: str, which: str = "completed") -> list[dict[str, Any]]:  # noqa: A002 - the protocol's name
    """Return the items of one type that started or completed so far, in order."""
    return [params["item"] for params in all_of(server, f"item/{which}") if params["item"]["type"] == type]


def msgs(server: Server, type: str) -> list[dict[str, Any]]:  # noqa: A002 - the protocol's name
    """Return the `msg` of every event of one type so far, in order, without the member `type`."""
    found = [params["msg"] for params in all_of(server, f"codex/event/{type}")]
    assert all(msg["type"] == type for msg in found)
    return [{key: value for key, value in msg.items() if key != "type"} for msg in found]


def methods(server: Server) -> list[str]:
    """Return the method of each notification and request that the server has sent so far, in order."""
    return [message["method"] for message in server.messages() if isinstance(message, dict) and "method" in message]


def asked(server: Server) -> list[str]:
    """Return the method of each request that the server has sent so far, in order."""
    sent = [message for message in server.messages() if isinstance(message, dict)]
    return [message["method"] for message in sent if "method" in message and "id" in message]


def release(server: Server, gate: str) -> None:
    """Let the fake model send the rest of its answer, which waits at the given gate; in a replay, this has no effect."""
    if server.upstream is not None:
        server.upstream.release(gate)


def asked_upstream(server: Server) -> list[list[dict[str, Any]]]:
    """Return the inputs of all requests to the model so far (empty in a replay)."""
    if server.upstream is None:
        return []
    return [entry["body"]["input"] for entry in server.upstream.ledger() if entry["method"] == "POST"]


def ran(app_server: AppServer, **outputs: str) -> dict[str, Any]:
    """Return the expected outputs of commands for a script; if a version adds random lines, `judge_ran` checks the outputs."""
    if app_server.by_version(CHUNKS):
        return {}
    return {"outputs": {call: f"Exit code: 0\nWall time: 0 seconds\nOutput:\n{words}" for call, words in outputs.items()}}


def judge_ran(server: Server, **outputs: str) -> None:
    """On a live server, check the outputs that the model got; in some versions the first lines of an output are random."""
    if server.upstream is None or not server.by_version(CHUNKS):
        return
    given = {item["call_id"]: item["output"] for item in asked_upstream(server)[-1] if item["type"] == "function_call_output"}
    for call, words in outputs.items():
        head, _, rest = given[call].partition("\nOutput:\n")
        assert (head.split(": ")[0], "Process exited with code 0" in head, rest) == ("Chunk ID", True, words)


def texts(items: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the role and text of each message of the user and of the model in a request's input.

    Messages that Codex adds are omitted.
    """
    found = []
    for item in items:
        if item.get("type") == "message" and item["role"] in ("user", "assistant"):
            words = "".join(part.get("text", "") for part in item["content"])
            if not words.startswith(("# AGENTS.md", "<environment_context>")):
                found.append((item["role"], words))
    return found


def without_url(message: str) -> str:
    """Return the message with `URL` in place of the address of the fake backend."""
    return re.sub(r"https?://[^/ ]+:\d+/(?:[^ )]*/)?v1/responses", "URL", message)
