"""The first words between an editor and a server. Source: codex-nvim-integration.txt, sections 1 and 2."""

from __future__ import annotations

import pytest

from harness.plugin.editor_client import EditorClient
from suites.editor_client.exact import CLIENT_INFO, OPENING, SUBCOMMAND
from suites.editor_client.speech import SPEC, Step, conversation, handshake, names, thread, turn

LIFECYCLE = f"{SPEC}, 2. Lifecycle"


@pytest.mark.spec("handshake-command", f"{SPEC}, 1. Overview", "starts `codex app-server` via stdio")
def test_it_starts_the_app_server(editor_client: EditorClient) -> None:
    """The codex that it is given is started with the word app-server."""
    editor = editor_client(server=conversation())
    editor.turn()
    assert SUBCOMMAND in editor.ledger()[0]["argv"]


@pytest.mark.spec("handshake-order", LIFECYCLE, "sends `initialize` ... Plugin then notifies `initialized` ... `thread/start`")
def test_the_order_of_the_first_messages(editor_client: EditorClient) -> None:
    """initialize, initialized, thread/start, turn/start; the second is a notification and the others are requests."""
    editor = editor_client(server=conversation())
    editor.turn()
    first = [message for message in editor.sent() if message.get("method") in OPENING]
    assert names(first) == list(OPENING)
    assert names(editor.sent())[0] == "initialize"
    assert ["id" in message for message in first] == [True, False, True, True]


@pytest.mark.spec("handshake-waits", LIFECYCLE, "Handshake: server replies ... Plugin then notifies")
def test_it_waits_for_the_reply(editor_client: EditorClient) -> None:
    """Until initialize is answered, nothing else is sent: the real server would refuse it as `Not initialized`."""
    silence: list[Step] = [{"expect": "initialize"}, {"quiet": 0.05}, {"reply": {"userAgent": "codex/0.92.0"}}]
    editor = editor_client(server=[*silence, *thread(), *turn()])
    editor.turn()
    ledger = [next(iter(entry)) for entry in editor.ledger()]
    assert ledger[:3] == ["run", "got", "said"], editor.ledger()[:4]


@pytest.mark.spec("handshake-client-info", LIFECYCLE, '"clientInfo": { "name": "codex.nvim", "title": ..., "version": "0.1.0" }')
def test_client_info(editor_client: EditorClient) -> None:
    """clientInfo says who the editor is: a name and a version, and a title if it likes."""
    editor = editor_client(server=conversation())
    editor.turn()
    params = editor.requests("initialize")[0]["params"]
    assert set(params) == {"clientInfo"}
    info = params["clientInfo"]
    assert set(info) - {"title"} == set(CLIENT_INFO)
    assert all(isinstance(info[key], str) and info[key].strip() for key in CLIENT_INFO), info
    assert isinstance(info.get("title"), str | None)


@pytest.mark.spec("handshake-once", LIFECYCLE, "Start: `connection.start()` spawns `cmd` and sends")
def test_one_handshake_for_a_server(editor_client: EditorClient) -> None:
    """A second prompt finds the server initialized: one process, one initialize, one initialized."""
    editor = editor_client(server=[*handshake(), *thread(), *turn(), *turn(name="turn_457")])
    editor.turn("one")
    editor.turn("two")
    assert len(editor.server_pids()) == 1
    assert (len(editor.requests("initialize")), len(editor.requests("initialized"))) == (1, 1)


@pytest.mark.spec("handshake-ids", f"{SPEC}, 1. Overview", "JSON-RPC messages are exchanged over the job's stdin/stdout")
def test_every_request_has_an_id_of_its_own(editor_client: EditorClient) -> None:
    """Ids are strings or integers, and no two requests have the same."""
    editor = editor_client(server=[*handshake(), *thread(), *turn(), *turn(name="turn_457")])
    editor.turn("one")
    editor.turn("two")
    ids = [message["id"] for message in editor.sent() if "method" in message and "id" in message]
    assert len(ids) >= 4
    assert all(isinstance(each, str | int) and not isinstance(each, bool) for each in ids), ids
    assert len({repr(each) for each in ids}) == len(ids), ids
