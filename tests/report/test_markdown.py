"""Texts in summary.md: shown as they are, for a reader of the page and for a reader of the file."""

from __future__ import annotations

import html

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from codex_replay.report.markdown import escaped


@given(st.text("ab1 _*[](){}<>#+-!|~@&:;/`\\^=.,'\"", min_size=1))
@example("111) a")
@example("[a]: b")
def test_escaped_text_is_shown_as_it_is(text: str) -> None:
    shown = " ".join(text.split()) or "a"
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(f"- {escaped(shown)}")
    assert page.startswith("<ul>\n<li>")
    assert html.unescape(page.removeprefix("<ul>\n<li>").removesuffix("</li>\n</ul>\n")) == shown


def test_a_readable_text_stays_readable() -> None:
    text = "messages[0].tool_calls (id: call_1) must be {}, but is 3 > 2; see /v1/chat/completions"
    assert escaped(text) == text
