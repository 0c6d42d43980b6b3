"""Agents that work together: the server reports spawn, message, wait and close as items and as events.

Source: the bundle's CollabAgentTool, CollabAgentToolCallStatus, CollabAgentStatus and EventMsg (collab_*). They need
`[features] collab = true`, which has the tools spawn_agent, send_input, wait and close_agent.
"""

from __future__ import annotations

from typing import Any

from codex_replay.plugin import AppServer, Server
from suites.app_server.expected import text
from suites.app_server.turns import ended, items_of, last_words, msgs, open_thread, run

CONFIG = {"features": {"collab": True}, "suppress_unstable_features_warning": True}
#: The script of the agent's model, which gives one answer to every request.
CHILD = {"items": [text("The child is done.", id="msg_c")], "match": "You are the child.", "times": "always"}
#: The reason why a recording shows one of several correct orders.
ORDER = "the agent's turn runs in parallel with the turn that spawned the agent"
NOBODY = "00000000-0000-7000-8000-000000000000"


def call(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    """Return a turn of the script in which the model calls one of the tools."""
    item = {"type": "function_call", "name": name, "call_id": call_id, "arguments": arguments}
    return {"items": [item]}


def go_on(server: Server, *turns: dict[str, Any]) -> None:
    """Give the models another script (does nothing on a recording, which has the result)."""
    if server.upstream is not None:
        server.upstream.script({"turns": list(turns), "otherwise": "default"})


def spawn(server: Server) -> tuple[str, str]:
    """Start a thread that spawns an agent, and wait until the agent is done; return the ids of both threads."""
    thread = open_thread(server)
    run(server, thread, "spawn")
    (agent,) = items_of(server, "collabAgentToolCall")[0]["receiverThreadIds"]
    ended(server, agent)
    return thread, agent


def script() -> dict[str, Any]:
    """Return a script: the first turn spawns an agent and reports it."""
    parent = [{**call("spawn_agent", "call_1", message="You are the child."), "match": "spawn"}, {"items": [text("Spawned.")]}]
    return {"turns": [CHILD, *parent], "otherwise": "default"}


def test_spawn(app_server: AppServer) -> None:
    """spawn_agent: the item starts without a receiver and completes with the agent in the state pendingInit or running."""
    server = app_server(script(), config=CONFIG, racy=ORDER)
    thread, agent = spawn(server)
    item = {"type": "collabAgentToolCall", "id": "call_1", "tool": "spawnAgent", "senderThreadId": thread}
    item["prompt"] = "You are the child."
    started = {**item, "status": "inProgress", "receiverThreadIds": [], "agentsStates": {}}
    assert items_of(server, "collabAgentToolCall", "started") == [started]
    done = dict(items_of(server, "collabAgentToolCall")[0])
    states = done.pop("agentsStates")
    assert done == {**item, "status": "completed", "receiverThreadIds": [agent]}
    assert list(states) == [agent]
    assert states[agent]["status"] in ("pendingInit", "running")
    of = {"call_id": "call_1", "sender_thread_id": thread, "prompt": "You are the child."}
    assert msgs(server, "collab_agent_spawn_begin") == [of]
    assert msgs(server, "collab_agent_spawn_end")[0]["new_thread_id"] == agent
    assert sorted(filter(None, last_words(server))) == ["Spawned.", "The child is done."]


def test_wait(app_server: AppServer) -> None:
    """wait: the item completes with the state and the last message of each agent."""
    server = app_server(script(), config=CONFIG, racy=ORDER)
    thread, agent = spawn(server)
    go_on(server, {**call("wait", "call_2", ids=[agent], timeout_ms=10000), "match": "wait"}, {"items": [text("Waited.")]})
    run(server, thread, "wait")
    done = items_of(server, "collabAgentToolCall")[-1]
    assert (done["tool"], done["status"], done["receiverThreadIds"]) == ("wait", "completed", [agent])
    assert done["agentsStates"] == {agent: {"status": "completed", "message": "The child is done."}}
    begin, end = msgs(server, "collab_waiting_begin")[0], msgs(server, "collab_waiting_end")[0]
    assert (begin["receiver_thread_ids"], end["statuses"]) == ([agent], {agent: {"completed": "The child is done."}})


def test_wait_for_one_that_failed(app_server: AppServer) -> None:
    """If an agent's model fails, the agent's state is completed without a message: wait reports only the end of the turn."""
    broken = {"status": 400, "body": "No.", "match": "You are the child.", "times": "always"}
    given = script()
    server = app_server({**given, "turns": [broken, *given["turns"][1:]]}, config=CONFIG, racy=ORDER)
    thread, agent = spawn(server)
    go_on(server, {**call("wait", "call_2", ids=[agent], timeout_ms=10000), "match": "wait"}, {"items": [text("Waited.")]})
    run(server, thread, "wait")
    states = items_of(server, "collabAgentToolCall")[-1]["agentsStates"]
    assert states == {agent: {"status": "completed", "message": None}}


def test_send_input_and_close(app_server: AppServer) -> None:
    """send_input sends a message to the agent; close_agent ends the agent and reports its last state."""
    server = app_server(script(), config=CONFIG, racy="the agent may be in any state when send_input or close_agent reaches it")
    thread, agent = spawn(server)
    go_on(
        server,
        CHILD,
        {**call("send_input", "call_2", id=agent, message="Go on."), "match": "speak"},
        {"items": [text("Spoken.")]},
    )
    run(server, thread, "speak")
    spoken = items_of(server, "collabAgentToolCall")[-1]
    assert (spoken["tool"], spoken["status"], spoken["prompt"]) == ("sendInput", "completed", "Go on.")
    assert [msg["prompt"] for msg in msgs(server, "collab_agent_interaction_begin")] == ["Go on."]
    assert [msg["receiver_thread_id"] for msg in msgs(server, "collab_agent_interaction_end")] == [agent]
    go_on(server, {**call("close_agent", "call_3", id=agent), "match": "close"}, {"items": [text("Closed.")]})
    run(server, thread, "close")
    closed = items_of(server, "collabAgentToolCall")[-1]
    assert (closed["tool"], closed["receiverThreadIds"]) == ("closeAgent", [agent])
    assert [msg["receiver_thread_id"] for msg in msgs(server, "collab_close_begin")] == [agent]
    assert [msg["receiver_thread_id"] for msg in msgs(server, "collab_close_end")] == [agent]


def test_no_such_agent(app_server: AppServer) -> None:
    """A call for an unknown agent fails, with the state notFound."""
    turns = [call("send_input", "call_1", id=NOBODY, message="Go on."), {"items": [text("Pity.")]}]
    server = app_server(turns, config=CONFIG)
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    done = items_of(server, "collabAgentToolCall")[-1]
    assert (done["tool"], done["status"], done["receiverThreadIds"]) == ("sendInput", "failed", [NOBODY])
    assert done["agentsStates"] == {NOBODY: {"status": "notFound", "message": None}}
    assert last_words(server) == ["Pity."]
