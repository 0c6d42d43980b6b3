"""Collaborating agents: the server reports each call of an agent tool (spawn, send, wait, close) as an item and as an event.

Source: the bundle's CollabAgentTool, CollabAgentToolCallStatus, CollabAgentStatus and EventMsg (collab_*). The cases
need `[features] collab = true`, which adds the tools spawn_agent, send_input, wait and close_agent.
"""

from __future__ import annotations

import json
from typing import Any

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import in_events, these
from suites.app_server.expected import text
from suites.app_server.turns import ended, items_of, last_words, msgs, open_thread, run

CONFIG = {"features": {"collab": True}, "suppress_unstable_features_warning": True}
#: The script of the agent's model, which gives one answer to every request.
CHILD = {"items": [text("The child is done.", id="msg_c")], "match": "You are the child.", "times": "always"}
#: The reason why a recording shows one of several correct orders.
RACE = "the agent may be in any state when send_input or close_agent reaches it"
ORDER = "the agent's turn runs in parallel with the turn that spawned the agent"
NOBODY = "00000000-0000-7000-8000-000000000000"


#: Name of a tool -> its name and the names of its arguments, in a version that has the tools in a namespace.
NAMES: dict[str, dict[str, tuple[str, dict[str, str]]]] = {
    "0.0.0": {},
    "0.169.0": {
        "spawn_agent": ("spawn_agent", {}),
        "wait": ("wait_agent", {"ids": "targets"}),
        "send_input": ("send_input", {"id": "target"}),
        "close_agent": ("close_agent", {"id": "target"}),
    },
}


def call(server: Server | AppServer, name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    """Return a turn of the script in which the model calls one of the tools for agents."""
    names = server.by_version(NAMES)
    if not names:
        return {"items": [{"type": "function_call", "name": name, "call_id": call_id, "arguments": arguments}]}
    name, keys = names[name]
    item = {"type": "function_call", "id": f"fc_{call_id}", "namespace": "multi_agent_v1", "name": name, "call_id": call_id}
    item |= {"arguments": json.dumps({keys.get(key, key): value for key, value in arguments.items()}), "status": "completed"}
    return {"items": [{"type": "event", "event": {"type": "response.output_item.done", "output_index": 0, "item": item}}]}


def go_on(server: Server, *turns: dict[str, Any]) -> None:
    """Give the fake model another script; in a replay, this has no effect."""
    if server.upstream is not None:
        server.upstream.script({"turns": list(turns), "otherwise": "default"})


def spawn(server: Server) -> tuple[str, str]:
    """Start a thread that spawns an agent, and wait until the agent is done; return the ids of both threads."""
    thread = open_thread(server)
    run(server, thread, "spawn")
    (agent,) = items_of(server, "collabAgentToolCall")[0]["receiverThreadIds"]
    ended(server, agent)
    return thread, agent


def script(server: AppServer) -> dict[str, Any]:
    """Return a script: the first turn spawns an agent and reports it."""
    spawned = {**call(server, "spawn_agent", "call_1", message="You are the child."), "match": "spawn"}
    return {"turns": [CHILD, spawned, {"items": [text("Spawned.")]}], "otherwise": "default"}


def test_spawn(app_server: AppServer) -> None:
    """A spawn_agent item starts without a receiver, and completes with an agent in the state pendingInit or running."""
    server = app_server(script(app_server), config=CONFIG, racy=ORDER)
    thread, agent = spawn(server)
    item = {"type": "collabAgentToolCall", "id": "call_1", "tool": "spawnAgent", "senderThreadId": thread}
    item["prompt"] = "You are the child."
    started = {**item, "status": "inProgress", "receiverThreadIds": [], "agentsStates": {}}
    assert items_of(server, "collabAgentToolCall", "started") == these(server, [started])
    done = dict(items_of(server, "collabAgentToolCall")[0])
    states = done.pop("agentsStates")
    assert done == these(server, {**item, "status": "completed", "receiverThreadIds": [agent]})
    assert list(states) == [agent]
    assert states[agent]["status"] in ("pendingInit", "running")
    of = {"call_id": "call_1", "sender_thread_id": thread, "prompt": "You are the child."}
    assert msgs(server, "collab_agent_spawn_begin") == in_events(server, [of])
    assert [msg["new_thread_id"] for msg in msgs(server, "collab_agent_spawn_end")] == in_events(server, [agent])
    assert sorted(filter(None, last_words(server))) == ["Spawned.", "The child is done."]


def test_wait(app_server: AppServer) -> None:
    """The item of a wait call completes with the state and the last message of each agent."""
    server = app_server(script(app_server), config=CONFIG, racy=ORDER)
    thread, agent = spawn(server)
    wait = {**call(server, "wait", "call_2", ids=[agent], timeout_ms=10000), "match": "wait"}
    go_on(server, wait, {"items": [text("Waited.")]})
    run(server, thread, "wait")
    done = items_of(server, "collabAgentToolCall")[-1]
    assert (done["tool"], done["status"], done["receiverThreadIds"]) == ("wait", "completed", [agent])
    assert done["agentsStates"] == {agent: {"status": "completed", "message": "The child is done."}}
    begun = [msg["receiver_thread_ids"] for msg in msgs(server, "collab_waiting_begin")]
    assert begun == in_events(server, [[agent]])
    ends = [msg["statuses"] for msg in msgs(server, "collab_waiting_end")]
    assert ends == in_events(server, [{agent: {"completed": "The child is done."}}])


#: The state of an agent whose model has failed.
FAILED: dict[str, dict[str, Any]] = {
    "0.0.0": {"status": "completed", "message": None},
    "0.169.0": {"status": "errored", "message": "No."},
}


def test_wait_for_one_that_failed(app_server: AppServer) -> None:
    """If an agent's model fails, the agent's state is completed without a message: wait reports only the end of the turn.

    Since 0.169.0 the agent's state is errored, with the message of the error.
    """
    broken = {"status": 400, "body": "No.", "match": "You are the child.", "times": "always"}
    given = script(app_server)
    server = app_server({**given, "turns": [broken, *given["turns"][1:]]}, config=CONFIG, racy=ORDER)
    thread, agent = spawn(server)
    wait = {**call(server, "wait", "call_2", ids=[agent], timeout_ms=10000), "match": "wait"}
    go_on(server, wait, {"items": [text("Waited.")]})
    run(server, thread, "wait")
    states = items_of(server, "collabAgentToolCall")[-1]["agentsStates"]
    assert states == {agent: server.by_version(FAILED)}


def test_send_input_and_close(app_server: AppServer) -> None:
    """send_input sends a message to the agent; close_agent ends the agent and reports its last state."""
    server = app_server(script(app_server), config=CONFIG, racy=RACE)
    thread, agent = spawn(server)
    go_on(
        server,
        CHILD,
        {**call(server, "send_input", "call_2", id=agent, message="Go on."), "match": "speak"},
        {"items": [text("Spoken.")]},
    )
    run(server, thread, "speak")
    spoken = items_of(server, "collabAgentToolCall")[-1]
    assert (spoken["tool"], spoken["status"], spoken["prompt"]) == ("sendInput", "completed", "Go on.")
    assert [msg["prompt"] for msg in msgs(server, "collab_agent_interaction_begin")] == in_events(server, ["Go on."])
    assert [msg["receiver_thread_id"] for msg in msgs(server, "collab_agent_interaction_end")] == in_events(server, [agent])
    go_on(server, {**call(server, "close_agent", "call_3", id=agent), "match": "close"}, {"items": [text("Closed.")]})
    run(server, thread, "close")
    closed = items_of(server, "collabAgentToolCall")[-1]
    assert (closed["tool"], closed["receiverThreadIds"]) == ("closeAgent", [agent])
    assert [msg["receiver_thread_id"] for msg in msgs(server, "collab_close_begin")] == in_events(server, [agent])
    assert [msg["receiver_thread_id"] for msg in msgs(server, "collab_close_end")] == in_events(server, [agent])


def test_no_such_agent(app_server: AppServer) -> None:
    """A call of an agent tool with an unknown agent fails with the state notFound."""
    turns = [call(app_server, "send_input", "call_1", id=NOBODY, message="Go on."), {"items": [text("Pity.")]}]
    server = app_server(turns, config=CONFIG)
    thread = open_thread(server)
    assert run(server, thread)["status"] == "completed"
    done = items_of(server, "collabAgentToolCall")[-1]
    assert (done["tool"], done["status"], done["receiverThreadIds"]) == ("sendInput", "failed", [NOBODY])
    assert done["agentsStates"] == {NOBODY: {"status": "notFound", "message": None}}
    assert last_words(server) == ["Pity."]
