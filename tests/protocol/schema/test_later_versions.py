"""What 0.169.0 writes and its own bundles do not describe: notifications left out, members in another spelling."""

from __future__ import annotations

from typing import Any

from codex_replay.protocol.schema import bundle
from codex_replay.protocol.schema.validate import RpcChecker, Validator, Violation

VERSION = "0.169.0"
EXPERIMENTAL = bundle.load_experimental(VERSION)


def check(*frames: tuple[str, dict[str, Any]]) -> list[Violation]:
    """Return the faults of the last frame."""
    assert EXPERIMENTAL is not None
    checker = RpcChecker(EXPERIMENTAL, Validator(EXPERIMENTAL))
    found: list[Violation] = []
    for sender, value in frames:
        found = list(checker.check(sender, value))  # type: ignore[arg-type]
    return found


def raw(**params: Any) -> dict[str, Any]:
    return {"method": "rawResponse/completed", "params": {"threadId": "t", "turnId": "u", **params}, "emittedAtMs": 1}


def test_a_notification_that_has_a_type_of_its_name_is_known_though_no_list_has_it() -> None:
    """`experimentalRawEvents` makes the server send them; the bundle has their types and leaves their names out."""
    assert check(("server", raw(responseId="r"))) == []
    assert [each.kind for each in check(("server", raw()))] == ["missing-required"]
    assert [each.kind for each in check(("server", raw(responseId="r", other=1)))] == ["unknown-key"]
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}
    told = {"method": "rawResponseItem/completed", "params": {"threadId": "t", "turnId": "u", "item": item}}
    assert check(("server", told)) == []
    inner: dict[str, Any] = {"turn_id": "u", "create_time": 1.5, "content_item_kinds": ["user.text"], "content_item_metadata": []}
    item["internal_chat_message_metadata_passthrough"] = inner
    assert check(("server", told)) == []
    inner["other"] = 1
    assert [each.path.rsplit(".", 1)[-1] for each in check(("server", told))] == ["other"]


def test_a_notification_without_a_type_stays_unknown() -> None:
    assert [each.kind for each in check(("server", {"method": "rawNothing/completed", "params": {}}))] == ["unknown-method"]
    assert [each.kind for each in check(("client", {"method": "rawResponse/completed", "params": {}}))] == ["unknown-method"]


def test_the_list_of_methods_stays_that_of_the_bundle() -> None:
    assert EXPERIMENTAL is not None
    assert "rawResponse/completed" not in EXPERIMENTAL.methods("server-notification")


def timeline(**entry: Any) -> list[Violation]:
    asked = {"id": 1, "method": "thread/timeline/list", "params": {"threadId": "t"}}
    result = {"data": [{"position": 1, **entry}], "nextCursor": None, "activeRealtimeSessionAtPageStart": None}
    return check(("client", asked), ("server", {"id": 1, "result": result}))


def test_the_timeline_is_spelled_as_the_binary_spells_it() -> None:
    started = {"type": "turnStarted", "turnId": "u", "startedAt": 1}
    ended = {"type": "turnCompleted", "turnId": "u", "status": "completed", "error": None, "startedAt": 1}
    assert timeline(**started) == []
    assert timeline(**ended, completedAt=2, durationMs=1) == []
    assert "unknown-key" in {each.kind for each in timeline(type="turnStarted", turn_id="u")}
    assert [each.kind for each in timeline(type="turnStarted")] == ["missing-required"]
