"""The differences that two recordings of 0.169.0 may have and no suite shows: the home, a login, files, parallel calls."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.recordings.compare import equal_after_normalisation

Rows = list[tuple[str, dict[str, Any]]]


def frames(rows: Rows) -> list[Frame]:
    sides = {"c": "client", "s": "server"}
    return [Frame(n, n / 10, "rpc", sides[side], "msg", dumps(value) + b"\n") for n, (side, value) in enumerate(rows, 1)]


def asked(method: str, params: Any, result: Any) -> Rows:
    return [("c", {"id": 1, "method": method, "params": params}), ("s", {"id": 1, "result": result})]


def told(method: str, item: str, kind: str) -> tuple[str, dict[str, Any]]:
    return "s", {"method": method, "params": {"threadId": "T", "turnId": "U", "item": {"type": kind, "id": item}}}


def opening(home: str) -> Rows:
    listed = {"data": [{"path": f"{home}/skills/a/SKILL.md"}]}
    return [
        *asked("initialize", {}, {"codexHome": home}),
        ("c", {"id": 2, "method": "skills/list"}),
        ("s", {"id": 2, "result": listed}),
    ]


def login(state: str) -> Rows:
    return asked(
        "account/login/start", {"type": "chatgpt"}, {"authUrl": f"https://a.invalid/authorize?client_id=x&state={state}"}
    )


def both(kind: str, order: str) -> Rows:
    ends = [(told("item/started", item, kind), told("item/completed", item, kind)) for item in order]
    return [each for pair in ends for each in pair]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (opening("/home/user"), opening("/tmp/elsewhere")),
        (login("abc"), login("d-_9")),
        (asked("fs/getMetadata", {}, {"modifiedAtMs": 1}), asked("fs/getMetadata", {}, {"modifiedAtMs": 2})),
        (both("commandExecution", "ab"), both("commandExecution", "ba")),
        (both("dynamicToolCall", "ab"), both("dynamicToolCall", "ba")),
    ],
    ids=["home", "login", "file", "commands", "tools"],
)
def test_two_runs_are_equal(one: Rows, other: Rows) -> None:
    assert equal_after_normalisation(frames(one), frames(other), "0.169.0")


def test_another_place_below_the_home_shows() -> None:
    other = opening("/tmp/elsewhere")
    other[-1][1]["result"]["data"][0]["path"] = "/tmp/elsewhere/skills/b/SKILL.md"
    assert not equal_after_normalisation(frames(opening("/home/user")), frames(other), "0.169.0")


def test_items_of_other_kinds_keep_their_order() -> None:
    assert not equal_after_normalisation(frames(both("agentMessage", "ab")), frames(both("agentMessage", "ba")), "0.169.0")
