"""Check how the editor splits the server's bytes into messages.

Source: docs/contract/editor.md, section 1 (JSON-RPC over stdin and stdout).

A pipe does not keep the boundaries of messages: a read may return a part of a message or several messages; only a newline ends a
line.
"""

from __future__ import annotations

import json

import pytest

from codex_replay.plugin.editor_client.fixture import EditorClient
from suites.editor_client.speech import IDS, TEXT, Step, completed, conversation, delta, handshake, thread, turn


@pytest.mark.parametrize("size", [1, 2, 37])
@pytest.mark.spec("framing-fragments", "EDIT-02")
def test_fragments(editor_client: EditorClient, size: int) -> None:
    """The editor reads messages that arrive in chunks of a few bytes, some of which split a character."""
    how: Step = {"write": {"split": size}}
    editor = editor_client(server=[*handshake(), *thread(), how, *turn(delta(TEXT))])
    assert editor.turn().text == TEXT


@pytest.mark.spec("framing-handshake-fragments", "EDIT-02")
def test_a_handshake_in_fragments(editor_client: EditorClient) -> None:
    """The editor also reads the messages of the handshake if they arrive in chunks."""
    how: Step = {"write": {"split": 7}}
    editor = editor_client(server=[how, *conversation(delta("Hello"))])
    assert editor.turn().text == "Hello"


@pytest.mark.spec("framing-together", "EDIT-02")
def test_several_messages_in_one_read(editor_client: EditorClient) -> None:
    """The editor handles one write with several deltas, the end of the turn, and half of the next turn's first message."""
    parts = [delta("One, "), delta("two, "), delta("three."), completed()]
    together: Step = {"together": [part["send"] for part in parts]}
    editor = editor_client(
        server=[*handshake(), *thread(), *turn(together, end=False), *turn(delta("And four.", "b"), name="turn_457")]
    )
    assert [editor.turn("one").text, editor.turn("two").text] == ["One, two, three.", "And four."]


@pytest.mark.spec("framing-half-behind", "EDIT-02")
def test_one_and_a_half_messages_in_a_read(editor_client: EditorClient) -> None:
    """The editor handles one read with a whole message and the start of a second message, whose rest comes later."""
    one = json.dumps(delta("First, ")["send"]) + "\n"
    two = json.dumps(delta("second.")["send"]) + "\n"
    steps: list[Step] = [{"raw": one + two[:40]}, {"gate": "rest"}, {"raw": two[40:]}]
    editor = editor_client(server=conversation(*steps))
    editor.prompt("Hello")
    editor.wait_shown("First, ")
    editor.open_gate("rest")
    assert editor.end().text == "First, second."


@pytest.mark.spec("framing-crlf", "REAL-84")
def test_lines_that_end_in_crlf(editor_client: EditorClient) -> None:
    """The editor ignores a carriage return before the newline."""
    how: Step = {"write": {"eol": "\r\n"}}
    editor = editor_client(
        server=[how, *conversation(delta(TEXT), {"send": {"id": 0, "method": "odd/request"}}, {"expect_reply": 0})]
    )
    assert editor.turn().text == TEXT


@pytest.mark.parametrize(
    "character", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\r"], ids=lambda c: f"U+{ord(c):04X}"
)
@pytest.mark.spec("framing-separators", "EDIT-02")
def test_what_only_looks_like_a_line_end(editor_client: EditorClient, character: str) -> None:
    """For the editor, a Unicode line separator in a JSON string does not end a line."""
    text = f"before{character}after"
    editor = editor_client(server=conversation(delta(text)))
    assert editor.turn().text == text


@pytest.mark.parametrize("form", ["raw", "escaped"])
@pytest.mark.spec("framing-escapes", "EDIT-02")
def test_escapes(editor_client: EditorClient, form: str) -> None:
    """The editor shows the same text whether the server escapes non-ASCII characters or not."""
    how: Step = {"write": {"ascii": form == "escaped"}}
    editor = editor_client(server=[how, *conversation(delta("é世😀\\n\\u0041"))])
    assert editor.turn().text == "é世😀\\n\\u0041"


@pytest.mark.spec("framing-large", "EDIT-02")
def test_a_delta_of_ten_megabytes(editor_client: EditorClient) -> None:
    """The editor reads a message of ten megabytes and the messages after it."""
    piece = "0123456789abcde\n"
    large = piece * (10 * (1 << 20) // len(piece))
    editor = editor_client(server=conversation(delta(large), delta("The end.")))
    text = editor.turn().text
    assert len(text) == len(large) + len("The end.")
    assert text == large + "The end."


@pytest.mark.spec("framing-blank", "REAL-82")
def test_lines_that_are_no_messages(editor_client: EditorClient) -> None:
    """The editor ignores blank lines and lines that are not messages, such as the output of a wrapper script."""
    stray = 'Loading profile...\n\n{"event":"ready"}\n[]\nnull\n{"id":null}\n{"id":99,"result":{}}\n'
    editor = editor_client(server=[{"raw": stray}, *conversation({"raw": stray}, delta("Still here."))])
    turn_ = editor.turn()
    assert (turn_.text, turn_.status) == ("Still here.", "completed")


@pytest.mark.spec("framing-field-order", "EDIT-02")
def test_members_in_another_order(editor_client: EditorClient) -> None:
    """The order of members and white space in a message do not matter."""
    params = json.dumps({**IDS, "itemId": "agent1", "delta": "In any order."}, indent=None, separators=(" , ", " : "))
    raw = f'  {{ "params" : {params} , "method" : "item/agentMessage/delta" }}  \n'
    editor = editor_client(server=conversation({"raw": raw}))
    assert editor.turn().text == "In any order."
