"""The checks of streams accept what the OpenAI API leaves to a proxy."""

from __future__ import annotations

from typing import Any

import pytest

from suites.proxy.replies.test_types import finished, take


def test_the_logprobs_of_a_part_may_come_later_than_the_part() -> None:
    part = {"type": "output_text", "text": "", "annotations": []}
    done: dict[str, Any] = {**part, "text": "Hi.", "logprobs": []}
    item: dict[str, Any] = {"type": "message", "id": "msg_1", "content": []}
    take("content_part.added", {"content_index": 0, "part": part}, item)
    take("output_text.delta", {"content_index": 0, "delta": "Hi."}, item)
    take("content_part.done", {"content_index": 0, "part": done}, item)
    whole, built = finished({"item": {**item, "content": [done]}}, item)
    assert whole == built


def test_another_text_of_a_part_is_still_a_mistake() -> None:
    item: dict[str, Any] = {"content": [{"type": "output_text", "text": "Hi."}]}
    with pytest.raises(AssertionError, match=r"part of content_part\.done"):
        take("content_part.done", {"content_index": 0, "part": {"type": "output_text", "text": "Ho."}}, item)
