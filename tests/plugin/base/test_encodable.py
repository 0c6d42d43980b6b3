"""What is sent between the processes of a run, and how our modules come into them."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.base.encodable import PACKED, encodable, packed, unpack

pytest_plugins = ["pytester"]

REPORT: dict[str, Any] = {
    "nodeid": "suites/a/test_b.py::test_c",
    "location": ("suites/a/test_b.py", 3, "test_c"),
    "keywords": {"test_c": 1},
    "longrepr": None,
    "user_properties": [("codex-replay", {"shown": ["a", "b"]}), ("ratio", 0.25)],
}


def test_a_report_is_sent_as_one_value_and_comes_out_as_it_was() -> None:
    sent = packed(REPORT)
    assert list(sent) == [PACKED]
    assert isinstance(sent[PACKED], bytes)
    sent["item_index"] = 7  # pytest-xdist adds its own
    unpack(sent)
    assert sent == {**REPORT, "item_index": 7}
    assert type(sent["location"]) is tuple


@pytest.mark.parametrize("text", ["\ud800 alone", "\udcff", "한 \uac00 and \ud55c: no surrogate, though it begins as one"])
def test_a_lone_surrogate_comes_out_as_its_escape(text: str) -> None:
    sent = packed({"longrepr": text})
    unpack(sent)
    assert sent == encodable({"longrepr": text})
    sent["longrepr"].encode()


def test_what_marshal_has_no_form_for_is_sent_as_before() -> None:
    class Named(str):
        __slots__ = ()

    assert packed({"nodeid": Named("x"), "longrepr": "\ud800"}) == {"nodeid": "x", "longrepr": "\\ud800"}


def test_a_report_that_was_not_packed_stays_as_it_is() -> None:
    given = dict(REPORT)
    unpack(given)
    assert given == REPORT


CASE = """
import sys

def test_it():
    import codex_replay.plugin.app_server.case, codex_replay.core.redact.redactor
    for name in ("codex_replay.plugin.app_server.case", "codex_replay.core.redact.redactor", "codex_replay.plugin.hooks"):
        kind = type(sys.modules[name].__spec__.loader).__name__
        assert kind == "SourceFileLoader", (name, kind)
"""


def test_pytest_leaves_our_modules_unrewritten(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(CASE)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
