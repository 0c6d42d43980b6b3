"""How bytes become messages. Source: docs/contract/editor.md, section 1 (JSON-RPC messages over the job's stdin and stdout).

A pipe has no messages: a read may give a piece of one or several at once, and a line ends at a newline and nowhere else.
"""

from __future__ import annotations

import json

import pytest

from codex_replay.plugin.editor_client.fixture import EditorClient
from suites.editor_client.speech import IDS, TEXT, Step, completed, conversation, delta, handshake, thread, turn


@pytest.mark.parametrize("size", [1, 2, 37])
@pytest.mark.spec("framing-fragments", "EDIT-02")
def test_fragments(editor_client: EditorClient, size: int) -> None:
    """Messages come in pieces of a few bytes, which end inside characters as well."""
    how: Step = {"write": {"split": size}}
    editor = editor_client(server=[*handshake(), *thread(), how, *turn(delta(TEXT))])
    assert editor.turn().text == TEXT


@pytest.mark.spec("framing-handshake-fragments", "EDIT-02")
def test_a_handshake_in_fragments(editor_client: EditorClient) -> None:
    """From the first byte on."""
    how: Step = {"write": {"split": 7}}
    editor = editor_client(server=[how, *conversation(delta("Hello"))])
    assert editor.turn().text == "Hello"


@pytest.mark.spec("framing-together", "EDIT-02")
def test_several_messages_in_one_read(editor_client: EditorClient) -> None:
    """Deltas and the end of the turn in one write, and half of the next turn's first message behind them."""
    parts = [delta("One, "), delta("two, "), delta("three."), completed()]
    together: Step = {"together": [part["send"] for part in parts]}
    editor = editor_client(
        server=[*handshake(), *thread(), *turn(together, end=False), *turn(delta("And four.", "b"), name="turn_457")]
    )
    assert [editor.turn("one").text, editor.turn("two").text] == ["One, two, three.", "And four."]


@pytest.mark.spec("framing-half-behind", "EDIT-02")
def test_one_and_a_half_messages_in_a_read(editor_client: EditorClient) -> None:
    """A whole message and the beginning of another come together; the rest of it comes later."""
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
    """A carriage return before the newline is white space."""
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
    """Unicode's line separators may be in a JSON string as they are; control characters come escaped."""
    text = f"before{character}after"
    editor = editor_client(server=conversation(delta(text)))
    assert editor.turn().text == text


@pytest.mark.parametrize("form", ["raw", "escaped"])
@pytest.mark.spec("framing-escapes", "EDIT-02")
def test_escapes(editor_client: EditorClient, form: str) -> None:
    """Characters outside ASCII come as they are or escaped, in pairs where they are beyond U+FFFF."""
    how: Step = {"write": {"ascii": form == "escaped"}}
    editor = editor_client(server=[how, *conversation(delta("é世😀\\n\\u0041"))])
    assert editor.turn().text == "é世😀\\n\\u0041"


@pytest.mark.spec("framing-large", "EDIT-02")
def test_a_delta_of_ten_megabytes(editor_client: EditorClient) -> None:
    """One message of ten megabytes, and what is behind it."""
    piece = "0123456789abcde\n"
    large = piece * (10 * (1 << 20) // len(piece))
    editor = editor_client(server=conversation(delta(large), delta("The end.")))
    text = editor.turn().text
    assert len(text) == len(large) + len("The end.")
    assert text == large + "The end."


@pytest.mark.spec("framing-blank", "REAL-82")
def test_lines_that_are_no_messages(editor_client: EditorClient) -> None:
    """A wrapper script may print a line of its own, and a blank one says nothing; the conversation goes on."""
    stray = 'Loading profile...\n\n{"event":"ready"}\n[]\nnull\n{"id":null}\n{"id":99,"result":{}}\n'
    editor = editor_client(server=[{"raw": stray}, *conversation({"raw": stray}, delta("Still here."))])
    turn_ = editor.turn()
    assert (turn_.text, turn_.status) == ("Still here.", "completed")


@pytest.mark.spec("framing-field-order", "EDIT-02")
def test_members_in_another_order(editor_client: EditorClient) -> None:
    """params before method, id last, white space between."""
    params = json.dumps({**IDS, "itemId": "agent1", "delta": "In any order."}, indent=None, separators=(" , ", " : "))
    raw = f'  {{ "params" : {params} , "method" : "item/agentMessage/delta" }}  \n'
    editor = editor_client(server=conversation({"raw": raw}))
    assert editor.turn().text == "In any order."
