"""A case that fails at an assertion without a text says in a sentence what the check requires, and both values."""

from __future__ import annotations

import json

import pytest

from codex_replay.plugin.reporting.message import required

pytest_plugins = ["pytester"]
TITLE = "The editor shows each answer."


@pytest.mark.parametrize(
    ("text", "compared", "sentence"),
    [
        (
            "assert ['a'] == ['b']\n  At index 0",
            (["b"], ["a"]),
            f"Not met: {TITLE} Expected ['b'], actual ['a'].",
        ),
        ("assert 'quota' in ''", None, f"Not met: {TITLE} This is false: 'quota' in ''."),
        ("the answer is late\nassert 3 < 2", None, None),
        ("a text of the case", None, None),
    ],
)
def test_only_a_bare_assertion_gets_a_sentence(text: str, compared: tuple[object, object] | None, sentence: str | None) -> None:
    assert required(text, TITLE, compared) == sentence


def test_long_values_are_shown_where_they_differ() -> None:
    found = required("assert x == y", TITLE, ("a" * 900 + "b", "a" * 900 + "c"))
    assert found is not None
    assert len(found) < 600
    assert "b'" in found
    assert "c'" in found


def test_long_objects_are_shown_by_the_members_that_differ() -> None:
    long = {f"member{i}": i for i in range(30)}
    expected = {**long, "at": {"x": 1, "y": 2}, "gone": None}
    found = required("assert x == y", TITLE, (expected, {"at": {"y": 3, "x": 1}, "more": [4], **long}))
    assert found == f"Not met: {TITLE} Expected {{'at': {{'y': 2}}, 'gone': None}}, actual {{'at': {{'y': 3}}, 'more': [4]}}."
    # The order of members is not a difference.
    found = required("assert x == y", TITLE, ({**long, "at": {"x": 1, "y": 2}, "n": 1}, {"n": 2, "at": {"y": 2, "x": 1}, **long}))
    assert found == f"Not met: {TITLE} Expected {{'n': 1}}, actual {{'n': 2}}."


def test_a_report_has_it(pytester: pytest.Pytester) -> None:
    pytester.mkdir("suites")
    pytester.path.joinpath("suites/test_shown.py").write_text(
        'def test_each() -> None:\n    """The editor shows each answer."""\n    assert len("ab") == 3\n'
        'def test_with_a_text() -> None:\n    """Never shown."""\n    assert not "ab", "the case has a text of its own"\n'
    )
    pytester.runpytest("-p", "codex_replay.suites", "--report", "report", "suites")
    bare, own = json.loads(pytester.path.joinpath("report/report.json").read_text())["cases"]
    assert bare["message"].splitlines()[0] == f"Not met: {TITLE} Expected 3, actual 2."
    assert "assert 2 == 3" in bare["details"]
    assert own["message"].startswith("the case has a text of its own")
