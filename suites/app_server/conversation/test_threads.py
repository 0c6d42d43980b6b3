"""What clients do with threads: start, read, list, resume, fork, archive, unarchive, roll back.

Several threads at the same time, and several listeners, are tested, too.

Source: docs/contract/real-0.92.md, sections 4 and 6, and the bundle's Thread*Params and Thread*Response. On a live server
the cases also check the input of the next model request.
"""

from __future__ import annotations

import pytest

from codex_replay.plugin import AppServer
from suites.app_server.conversation.threads import (
    FILTERS,
    NO_SUCH_ROLLBACK,
    NO_SUCH_THREAD,
    NOBODY,
    ONE,
    ROLLBACK,
    TWO,
    drop,
    must_ask,
    must_refuse,
    says,
    settings,
    stored,
    two_turns,
)
from suites.app_server.dialect import V1, has_events, in_events, these, turn_id
from suites.app_server.expected import all_of, text
from suites.app_server.turns import (
    ESTIMATE,
    FREE,
    another_conversation,
    another_thread,
    asked_upstream,
    conversation,
    ended,
    last_words,
    methods,
    msgs,
    open_thread,
    release,
    run,
    run_v1,
    start,
    texts,
    v1_items,
    wait_message,
)


def test_read(app_server: AppServer) -> None:
    """thread/read returns the thread with a preview of its first message, and the turns of the thread only on request."""
    server = app_server(says("One", "Two"))
    thread = two_turns(server)
    begun = all_of(server, "thread/started")[0]["thread"]
    read = server.request("thread/read", {"threadId": thread})["thread"]
    assert begun["preview"] == ""
    # The server takes the time of its record after, or before, the time of its notification.
    assert abs(read["createdAt"] - begun["createdAt"]) <= 1
    later = {"createdAt": 0, "updatedAt": 0, **({} if has_events(server) else {"recencyAt": 0})}
    assert {**read, **later} == {**begun, "preview": "first", **later}
    whole = server.request("thread/read", {"threadId": thread, "includeTurns": True})["thread"]
    assert whole == {**read, "turns": stored(server, ONE, TWO)}


def test_list(app_server: AppServer) -> None:
    """thread/list returns the threads with at least one turn, newest first; `limit` and `cursor` select a page."""
    server = app_server(says("One", "Two"))
    first = open_thread(server)
    assert server.request("thread/list", {}) == these(server, {"data": [], "nextCursor": None})
    run(server, first, "first")
    second = another_thread(server)
    run(server, second, "second")
    everything = server.request("thread/list", {})
    assert everything["nextCursor"] is None
    assert [(thread["id"], thread["preview"], thread["turns"]) for thread in everything["data"]] == [
        (second, "second", []),
        (first, "first", []),
    ]
    page = server.request("thread/list", {"limit": 1})
    assert page["data"] == everything["data"][:1]
    last = server.request("thread/list", {"limit": 1, "cursor": page["nextCursor"]})
    assert last == these(server, {"data": everything["data"][1:], "nextCursor": None})


@pytest.mark.parametrize("row", FILTERS)
def test_list_filter(app_server: AppServer, row: str) -> None:
    """thread/list returns the threads that match the filter."""
    params, count = FILTERS[row]
    server = app_server(says("One"))
    thread = open_thread(server)
    run(server, thread, "first")
    assert [each["id"] for each in server.request("thread/list", params)["data"]] == [thread] * count


def test_list_refuses_a_bad_cursor(app_server: AppServer) -> None:
    """thread/list refuses a cursor that is not from an earlier response."""
    server = app_server()
    server.initialize()
    must_refuse(server, "thread/list", {"cursor": "x"}, "invalid cursor: x")


def test_loaded_list(app_server: AppServer) -> None:
    """thread/loaded/list returns the ids of the threads of this process, with or without turns, in pages on request."""
    server = app_server()
    first = open_thread(server)
    second = another_thread(server)
    found = server.request("thread/loaded/list", {})
    assert found == these(server, {"data": sorted([first, second]), "nextCursor": None})
    page = server.request("thread/loaded/list", {"limit": 1})
    assert page == these(server, {"data": found["data"][:1], "nextCursor": found["data"][0]})
    last = server.request("thread/loaded/list", {"limit": 1, "cursor": page["nextCursor"]})
    assert last == these(server, {"data": found["data"][1:], "nextCursor": None})


def test_resume(app_server: AppServer) -> None:
    """thread/resume returns the thread with its turns and the settings now in force; the ids of new turns start at 0."""
    server = app_server(says("One", "Two", "Three"))
    thread = two_turns(server)
    result = server.request("thread/resume", {"threadId": thread, **FREE})
    assert result["thread"]["turns"] == stored(server, ONE, TWO)
    assert (result["thread"]["id"], result["approvalPolicy"]) == (thread, "never")
    # 0.169.0 keeps the sandbox of a thread that is loaded.
    assert result["sandbox"]["type"] == server.by_version({"0.0.0": "dangerFullAccess", "0.169.0": "readOnly"})
    if has_events(server):
        assert list(result["sandbox"]) == ["type"]
    third = run(server, thread, "third")["id"]
    assert third == ("0" if has_events(server) else turn_id(server, 2))
    assert last_words(server) == ["One", "Two", "Three"]
    must_ask(server, 2, [[("user", "first"), ("assistant", "One"), ("user", "second"), ("assistant", "Two"), ("user", "third")]])


@pytest.mark.since("0.169.0", "until then thread/resume forgets the settings of thread/start")
def test_resume_keeps_the_settings(app_server: AppServer) -> None:
    """thread/resume keeps the settings of thread/start; thread/fork keeps only the approval policy."""
    server = app_server(says("One"))
    kept = ("gpt-5.2", "untrusted", "workspaceWrite", None)
    thread = open_thread(server, model="gpt-5.2", approvalPolicy="untrusted", sandbox="workspace-write")
    run(server, thread, "first")
    assert settings(server.request("thread/resume", {"threadId": thread})) == kept
    forked = ("gpt-5.2-codex", "untrusted", "readOnly", None)
    assert settings(server.request("thread/fork", {"threadId": thread})) == forked
    asked = {"model": "gpt-5.5", "approvalPolicy": "never", "sandbox": "read-only"}
    assert settings(server.request("thread/fork", {"threadId": thread, **asked}))[:3] == ("gpt-5.5", "never", "readOnly")


@pytest.mark.until("0.140.0", "0.169.0 keeps the settings of the thread")
def test_resume_forgets_the_settings(app_server: AppServer) -> None:
    """thread/resume and thread/fork use the settings from config.toml and from their own request, not those from thread/start.

    If a thread is resumed with a different model, the server sends a warning.
    """
    server = app_server(says("One", "Two"))
    configured = ("gpt-5.2-codex", "never", "readOnly", None)
    thread = open_thread(server, model="gpt-5.2", approvalPolicy="untrusted", sandbox="workspace-write")
    run(server, thread, "first")
    assert settings(server.request("thread/resume", {"threadId": thread})) == configured
    message = server.notification("codex/event/warning")["msg"]["message"]
    assert message.startswith("This session was recorded with model `gpt-5.2` but is resuming with `gpt-5.2-codex`.")
    asked = {"model": "gpt-5.2", "approvalPolicy": "on-failure", "sandbox": "workspace-write"}
    resumed = server.request("thread/resume", {"threadId": thread, **asked, "config": {"model_reasoning_effort": "low"}})
    assert settings(resumed) == ("gpt-5.2", "on-failure", "workspaceWrite", "low")
    assert settings(server.request("thread/fork", {"threadId": thread})) == configured
    run(server, thread, "second")
    assert last_words(server) == ["One", "Two"]


def test_resume_with_a_history(app_server: AppServer) -> None:
    """thread/resume accepts a history from the client instead of the thread's file."""
    server = app_server(says("One", "Two"))
    thread = open_thread(server, experimental=True)
    run(server, thread, "first")
    if not has_events(server):  # later versions refuse it for a thread that is loaded
        server.request("thread/archive", {"threadId": thread})
        server.request("thread/unarchive", {"threadId": thread})
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "from elsewhere"}]}]
    resumed = server.request("thread/resume", {"threadId": thread, "history": history})["thread"]
    assert resumed["id"] != thread
    assert resumed["preview"] == "from elsewhere"
    run(server, resumed["id"], "second")
    assert last_words(server) == ["One", "Two"]
    must_ask(server, 1, [[("user", "from elsewhere"), ("user", "second")]])


def test_fork(app_server: AppServer) -> None:
    """thread/fork makes a new thread with the same turns; later messages of one thread do not appear in the other thread."""
    server = app_server(
        [*says("One", "Two"), *[{"items": [text("Three", id="m")], "match": "in the fork"}], {"items": [text("Four", id="n")]}]
    )
    thread = two_turns(server)
    fork = server.request("thread/fork", {"threadId": thread})["thread"]
    assert fork["id"] != thread
    assert (fork["preview"], fork["turns"]) == ("first", stored(server, ONE, TWO))
    if has_events(server):
        assert server.notification("thread/started", thread=fork)["thread"]["id"] == fork["id"]
    else:  # without the turns
        assert server.notification("thread/started")["thread"]["id"] == fork["id"]
    turns = [run(server, fork["id"], "in the fork")["id"], run(server, thread, "in the thread")["id"]]
    assert turns == (["0", "2"] if has_events(server) else [turn_id(server, 0, fork["id"]), turn_id(server, 2, thread)])
    assert last_words(server) == ["One", "Two", "Three", "Four"]
    inputs = [dict.fromkeys(words for role, words in texts(given) if role == "user") for given in asked_upstream(server)[2:]]
    assert [list(words) for words in inputs] in ([], [["first", "second", "in the fork"], ["first", "second", "in the thread"]])


def test_rollback(app_server: AppServer) -> None:
    """thread/rollback removes the last turns from the thread, from its file, and from the model's input.

    thread/revert removes turns in the same way.
    """
    server = app_server(says("One", "Two", "Three"), racy=ESTIMATE)
    thread = open_thread(server, experimental=True)
    started = [run(server, thread, words)["id"] for words in ("first", "second")]
    result = server.request(*drop(server, thread, 1, started))["thread"]
    left = stored(server, ONE)
    assert result["turns"] == (left if server.by_version(ROLLBACK) else [])
    assert msgs(server, "thread_rolled_back") == in_events(server, [{"num_turns": 1}])
    assert server.request("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"] == left
    third = run(server, thread, "third")
    assert third["id"] == ("3" if has_events(server) else turn_id(server, 2))
    must_ask(server, 2, [[("user", "first"), ("assistant", "One"), ("user", "third")]])


def test_rollback_of_more_than_there_is(app_server: AppServer) -> None:
    """A rollback of too many turns removes all turns; a rollback of zero turns and a revert to an unknown turn are refused."""
    server = app_server(says("One"), racy=ESTIMATE)
    thread = open_thread(server, experimental=True)
    started = [run(server, thread, "first")["id"]]
    if server.by_version(ROLLBACK):
        must_refuse(server, "thread/rollback", {"threadId": thread, "numTurns": 0}, "numTurns must be >= 1")
        assert server.request("thread/rollback", {"threadId": thread, "numTurns": 9})["thread"]["turns"] == []
        return
    must_refuse(server, "thread/revert", {"threadId": thread, "beforeTurnId": "x"}, "turn not found: x")
    server.request(*drop(server, thread, 1, started))
    assert server.request("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"] == []


def test_rollback_in_a_turn(app_server: AppServer) -> None:
    """The server refuses a rollback during a turn with an error and an event; the turn continues.

    A revert interrupts and removes the running turn.
    """
    server = app_server([{"items": [text("One"), {"type": "gate", "name": "later"}]}])
    thread = open_thread(server, experimental=True)
    started = [start(server, thread)["id"]]
    wait_message(server)
    if not server.by_version(ROLLBACK):
        server.request(*drop(server, thread, 1, started))
        assert ended(server, thread)["status"] == "interrupted"
        assert server.request("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"] == []
        return
    words = "Cannot rollback while a turn is in progress."
    must_refuse(server, *drop(server, thread, 1, started), words)
    report = server.notification("codex/event/error")
    assert report["msg"] == {"type": "error", "message": words, "codex_error_info": "thread_rollback_failed"}
    release(server, "later")
    assert ended(server, thread)["status"] == "completed"
    assert last_words(server) == ["One"]


def test_archive(app_server: AppServer) -> None:
    """thread/archive unloads a thread and moves it to the list of archived threads; thread/unarchive moves it back, unloaded."""
    server = app_server(says("One", "Two"))
    thread = two_turns(server)
    assert server.request("thread/archive", {"threadId": thread}) == {}
    if has_events(server):
        assert server.notification("codex/event/shutdown_complete")["msg"] == {"type": "shutdown_complete"}
    else:
        assert server.notification("thread/archived") == {"threadId": thread}
    assert server.request("thread/list", {})["data"] == []
    (archived,) = server.request("thread/list", {"archived": True})["data"]
    assert archived["id"] == thread
    assert "/archived_sessions/" in archived["path"]
    assert server.request("thread/loaded/list", {})["data"] == []
    back = server.request("thread/unarchive", {"threadId": thread})["thread"]
    assert (back["id"], back["preview"], back["turns"]) == (thread, "first", [])
    assert "/archived_sessions/" not in back["path"]
    assert [each["id"] for each in server.request("thread/list", {})["data"]] == [thread]
    must_refuse(server, "turn/start", {"threadId": thread, "input": []}, f"thread not found: {thread}")


@pytest.mark.parametrize("row", NO_SUCH_THREAD)
def test_no_such_thread(app_server: AppServer, row: str) -> None:
    """For an unknown thread each method has its own error message. (REAL-91)"""
    method, params, message = app_server.by_version(NO_SUCH_ROLLBACK).get(row, NO_SUCH_THREAD[row])
    server = app_server()
    server.initialize(experimental=row == "rollback")
    must_refuse(server, method, {"threadId": NOBODY, **params}, message.format(id=NOBODY))


def test_archived_thread_is_not_there(app_server: AppServer) -> None:
    """The server refuses to read or archive an archived thread, and to unarchive a thread that is not archived."""
    server = app_server(says("One"))
    thread = open_thread(server)
    run(server, thread, "first")
    words = {"0.0.0": "no archived rollout found for thread id {id}", "0.169.0": "thread {id} already has an active writer"}
    must_refuse(server, "thread/unarchive", {"threadId": thread}, server.by_version(words).format(id=thread))
    server.request("thread/archive", {"threadId": thread})
    must_refuse(server, "thread/archive", {"threadId": thread}, f"no rollout found for thread id {thread}")
    if server.by_version({"0.0.0": False, "0.169.0": True}):  # it can be read
        assert server.request("thread/read", {"threadId": thread})["thread"]["id"] == thread
        return
    must_refuse(server, "thread/read", {"threadId": thread}, f"thread not loaded: {thread}")


def test_ephemeral(app_server: AppServer) -> None:
    """An ephemeral thread has no file: it runs turns, but cannot be listed, read with turns, forked or archived."""
    server = app_server(says("One"))
    thread = open_thread(server, ephemeral=True)
    assert all_of(server, "thread/started")[0]["thread"]["path"] is None
    assert run(server, thread, "first")["status"] == "completed"
    assert server.request("thread/list", {})["data"] == []
    refused = {
        "thread/read": ({"includeTurns": True}, "ephemeral threads do not support includeTurns"),
        "thread/fork": ({}, f"no rollout found for thread id {thread}"),
        "thread/archive": ({}, f"no rollout found for thread id {thread}"),
    }
    for method, (params, message) in refused.items():
        must_refuse(server, method, {"threadId": thread, **params}, message)


def test_two_threads_at_once(app_server: AppServer) -> None:
    """When turns run in two threads at the same time, each thread gets all of its own frames and no others. (REAL-114)"""
    hello = {"items": [text("Hello", "Hel", "lo")], "match": "to the first"}
    server = app_server([hello, {"items": [text("Bye", "B", "ye", id="msg_2")], "match": "to the second"}])
    first = open_thread(server)
    second = another_thread(server)
    start(server, first, "to the first")
    start(server, second, "to the second")
    assert ended(server, first)["status"] == ended(server, second)["status"] == "completed"
    assert server.close() == 0
    message: dict[str, str] = {first: "", second: ""}
    for params in all_of(server, "item/agentMessage/delta"):
        message[params["threadId"]] += params["delta"]
    assert message == {first: "Hello", second: "Bye"}
    for thread, words in ((first, "Hello"), (second, "Bye")):
        if not has_events(server):
            ends = [params["turn"]["items"] for params in all_of(server, "turn/completed") if params["threadId"] == thread]
            assert [[item["text"] for item in items] for items in ends] == [[words]]
            continue
        ends = [params for params in all_of(server, "codex/event/task_complete") if params["conversationId"] == thread]
        assert [params["msg"]["last_agent_message"] for params in ends] == [words]


@V1
def test_two_listeners(app_server: AppServer) -> None:
    """If one conversation has two listeners, each event reaches only one of them, so the client gets each event once.

    Source: REAL-50.
    """
    server = app_server(says("Hello"))
    talk = conversation(server)
    server.request("addConversationListener", {"conversationId": talk})
    run_v1(server, talk)
    assert server.close() == 0
    seen = methods(server)
    for method in ("codex/event/task_started", "codex/event/user_message", "codex/event/task_complete", "turn/completed"):
        assert seen.count(method) == 1
    assert last_words(server) == ["Hello"]


@V1
def test_v1_list(app_server: AppServer) -> None:
    """In v1, listConversations (in pages) and the summary of a conversation have the same content as a thread in v2."""
    server = app_server(says("One", "Two"))
    first = conversation(server)
    run_v1(server, first, "first")
    second = another_conversation(server)
    run_v1(server, second, "second")
    page = server.request("listConversations", {"pageSize": 1})
    rest = server.request("listConversations", {"pageSize": 1, "cursor": page["nextCursor"]})
    assert rest["nextCursor"] is None
    listed = page["items"] + rest["items"]
    assert sorted((item["conversationId"], item["preview"]) for item in listed) == sorted([(first, "first"), (second, "second")])
    for item in listed:
        assert (item["modelProvider"], item["cwd"], item["source"], item["gitInfo"]) == ("mock", server.work, "vscode", None)
        assert server.request("getConversationSummary", {"conversationId": item["conversationId"]}) == {"summary": item}
        assert server.request("getConversationSummary", {"rolloutPath": item["path"]}) == {"summary": item}


@V1
def test_v1_resume(app_server: AppServer) -> None:
    """In v1, resumeConversation returns the events so far, and sends them in sessionConfigured.

    After resumeConversation, the ids of new turns start at 0.
    """
    server = app_server(says("One", "Two"))
    talk = conversation(server)
    run_v1(server, talk, "first")
    result = server.request("resumeConversation", {"conversationId": talk})
    report = server.notification("sessionConfigured")
    assert (result["conversationId"], result["model"], report["sessionId"]) == (talk, "gpt-5.2-codex", talk)
    assert result["initialMessages"] == report["initialMessages"]
    kinds = [message["type"] for message in report["initialMessages"] if message["type"] != "token_count"]
    assert kinds == ["user_message", "agent_message"]
    assert (report["historyLogId"], report["historyEntryCount"], report["reasoningEffort"]) == (0, 0, None)
    server.request("addConversationListener", {"conversationId": talk})
    assert run_v1(server, talk, "second")["id"] == "0"
    assert last_words(server) == ["One", "Two"]


@V1
def test_v1_fork(app_server: AppServer) -> None:
    """In v1, forkConversation returns a new conversation with the same events."""
    server = app_server(says("One", "Two"))
    talk = conversation(server)
    run_v1(server, talk, "first")
    result = server.request("forkConversation", {"conversationId": talk})
    fork = result["conversationId"]
    assert fork != talk
    assert server.notification("sessionConfigured")["sessionId"] == fork
    assert {"type": "agent_message", "message": "One"} in result["initialMessages"]
    server.request("addConversationListener", {"conversationId": fork})
    assert run_v1(server, fork, "second")["status"] == "completed"
    assert last_words(server) == ["One", "Two"]


@V1
def test_v1_archive(app_server: AppServer) -> None:
    """In v1, archiveConversation requires the path of the conversation's file.

    listConversations omits an archived conversation.
    """
    server = app_server(says("One"))
    server.initialize()
    begun = server.request("newConversation", {"cwd": server.work})
    talk, path = begun["conversationId"], begun["rolloutPath"]
    server.request("addConversationListener", {"conversationId": talk})
    run_v1(server, talk)
    elsewhere = {"conversationId": talk, "rolloutPath": "/rollout.jsonl"}
    must_refuse(server, "archiveConversation", elsewhere, "rollout path `/rollout.jsonl` must be in sessions directory")
    assert server.request("archiveConversation", {"conversationId": talk, "rolloutPath": path}) == {}
    assert server.request("listConversations", {})["items"] == []
    items = v1_items("x")
    must_refuse(server, "sendUserMessage", {"conversationId": talk, "items": items}, f"conversation not found: {talk}")
