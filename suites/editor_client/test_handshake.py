"""The first messages between an editor and a server. Source: docs/contract/editor.md, sections 1 and 2."""

from __future__ import annotations

import pytest

from codex_replay.plugin.editor_client.fixture import EditorClient
from suites.editor_client.exact import CLIENT_INFO, INITIALIZED, OPENING, SUBCOMMAND
from suites.editor_client.speech import Step, conversation, handshake, names, thread, turn


@pytest.mark.spec("handshake-command", "EDIT-01", "EDIT-38")
def test_it_starts_the_app_server(editor_client: EditorClient) -> None:
    """The editor starts the configured codex with the argument app-server."""
    editor = editor_client(server=conversation())
    editor.turn()
    assert SUBCOMMAND in editor.ledger()[0]["argv"]


@pytest.mark.spec("handshake-order", "EDIT-04")
def test_the_order_of_the_first_messages(editor_client: EditorClient) -> None:
    """The editor sends initialize, initialized, thread/start and turn/start; only `initialized` is a notification."""
    editor = editor_client(server=conversation())
    editor.turn()
    first = [message for message in editor.sent() if message.get("method") in OPENING]
    assert names(first) == list(OPENING)
    assert names(editor.sent())[0] == "initialize"
    assert ["id" in message for message in first] == [True, False, True, True]


@pytest.mark.spec("handshake-initialized", "EDIT-07", "REAL-37")
def test_initialized_has_no_params(editor_client: EditorClient) -> None:
    """The notification `initialized` has only its method, and optionally `jsonrpc`."""
    editor = editor_client(server=conversation())
    editor.turn()
    messages = [{name: value for name, value in each.items() if name != "jsonrpc"} for each in editor.requests("initialized")]
    assert messages == [INITIALIZED]


@pytest.mark.spec("handshake-waits", "EDIT-05")
def test_it_waits_for_the_reply(editor_client: EditorClient) -> None:
    """The editor waits for the response to initialize before it sends another message, which the real server would refuse."""
    silence: list[Step] = [{"expect": "initialize"}, {"quiet": 0.05}, {"reply": {"userAgent": "codex/0.92.0"}}]
    editor = editor_client(server=[*silence, *thread(), *turn()])
    editor.turn()
    ledger = [next(iter(entry)) for entry in editor.ledger()]
    assert ledger[:3] == ["run", "got", "said"], editor.ledger()[:4]


@pytest.mark.spec("handshake-client-info", "EDIT-06")
def test_client_info(editor_client: EditorClient) -> None:
    """clientInfo has the name, the title and the version of the editor as strings.

    (The check `closed-world` refuses other members of `params` that the Codex version does not know.)
    """
    editor = editor_client(server=conversation())
    editor.turn()
    info = editor.requests("initialize")[0]["params"].get("clientInfo", {})
    assert set(info) == set(CLIENT_INFO)
    assert all(isinstance(info[key], str) and info[key].strip() for key in CLIENT_INFO), info


@pytest.mark.spec("handshake-once", "EDIT-04")
def test_one_handshake_for_a_server(editor_client: EditorClient) -> None:
    """For a second prompt, the editor uses the same server process, without a second handshake."""
    editor = editor_client(server=[*handshake(), *thread(), *turn(), *turn(name="turn_457")])
    editor.turn("one")
    editor.turn("two")
    assert len(editor.server_pids()) == 1
    assert (len(editor.requests("initialize")), len(editor.requests("initialized"))) == (1, 1)


@pytest.mark.spec("handshake-ids", "EDIT-02")
def test_every_request_has_an_id_of_its_own(editor_client: EditorClient) -> None:
    """The id of each request of the editor is a string or an integer, and all ids are different."""
    turns = [step for number in range(5) for step in turn(name=f"turn_{number}")]
    editor = editor_client(server=[*handshake(), *thread(), *turns])
    for number in range(5):
        editor.turn(f"prompt {number}")
    ids = [message["id"] for message in editor.sent() if "method" in message and "id" in message]
    assert len(ids) >= 7
    wrong = [each for each in ids if not isinstance(each, str | int) or isinstance(each, bool)]
    assert wrong == [], f"ids of the editor's requests are neither a string nor an integer: {wrong}"
    assert len({repr(each) for each in ids}) == len(ids), f"the editor sent several requests with the same id: {ids}"
