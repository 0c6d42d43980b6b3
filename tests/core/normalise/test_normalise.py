"""Normalising: what is volatile is masked or named, what is not stays, and an id in the wrong place shows."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.core.normalise.masking import UUID_FORM
from codex_replay.core.normalise.normaliser import Normaliser, Rules
from codex_replay.protocol import data_tables

TABLE = data_tables.load("normalise")
RULES = Rules(TABLE)
A, B, C = ("01a1fa14-aef5-7581-a113-00000000000" + digit for digit in "abc")


def normal(*values: Any) -> list[Any]:
    normaliser = Normaliser(TABLE)
    for value in values:
        normaliser.learn(value)
    return [normaliser.value(value) for value in values]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nx", "Exit code: 0\nWall time: <duration> seconds\nOutput:\nx"),
        (
            '{"output":"x","metadata":{"exit_code":0,"duration_seconds":0.1}}',
            '{"output":"x","metadata":{"exit_code":0,"duration_seconds":<duration>}}',
        ),
        ("aborted by user after 0.4s", "aborted by user after <duration>s"),
        ("error, url: http://127.0.0.1:40123/v1/responses", "error, url: http://127.0.0.1:<port>/v1/responses"),
        ("lab/0.92.0 (Debian 12.0.0; x86_64) unknown (lab; 1)", "lab/<version> (<os>; <arch>) <terminal> (lab; 1)"),
        ("/v1/models?client_version=0.92.0", "/v1/models?client_version=<version>"),
        (
            f"/home/a/.codex/sessions/2026/11/20/rollout-2026-11-20T17-50-21-{A}.jsonl",
            f"<path>/sessions/<date>/rollout-<time>-{A}.jsonl",
        ),
        (f"sha256:{'0f' * 32} but not sha256:0f0f", "sha256:<hash> but not sha256:0f0f"),
        (f"2026-11-20T19-13-51|{A}", f"<time>|{A}"),
        (f"x/archived_sessions/rollout-2026-11-20T17-50-21-{A}.jsonl", f"x/archived_sessions/rollout-<time>-{A}.jsonl"),
        ("?a=b&code_challenge=x_Y-1&state=Z&c=d", "?a=b&code_challenge=<random>&state=<random>&c=d"),
        ("Chunk ID: 0f0f0f\nWall time: 0.25 seconds\n", "Chunk ID: <chunk>\nWall time: <duration> seconds\n"),
        ("Process running with session ID 29534\n", "Process running with session ID <process>\n"),
        ("redirect_uri=http%3A%2F%2Flocalhost%3A1455%2Fauth", "redirect_uri=http%3A%2F%2Flocalhost%3A<port>%2Fauth"),
        ("<cwd>/srv/x</cwd>", "<cwd><path></cwd>"),
        ("# AGENTS.md instructions for /srv/x\n\nBe kind", "# AGENTS.md instructions for <path>\n\nBe kind"),
        ("(file: /srv/x/skills/.system/a/SKILL.md)", "(file: <path>/skills/.system/a/SKILL.md)"),
        ("The writable roots are `/a`, `/tmp`.", "The writable roots are <paths>."),
        ("nothing of all this, at 12:30 in 2026", "nothing of all this, at 12:30 in 2026"),
        ("1.2.127.0.0.1:80 and /v1/responses", "1.2.127.0.0.1:80 and /v1/responses"),
    ],
)
def test_strings_are_masked_where_they_are_volatile_and_nowhere_else(text: str, masked: str) -> None:
    assert RULES.mask_string(text) == masked


@pytest.mark.parametrize("text", [rule["pattern"] for rule in TABLE["strings"]])
def test_each_string_rule_is_needed(text: str) -> None:
    """Without the rule some case of the test above fails: no pattern is dead."""
    cases = test_strings_are_masked_where_they_are_volatile_and_nowhere_else.pytestmark[0].args[1]  # type: ignore[attr-defined]
    rules = Rules({**TABLE, "strings": [rule for rule in TABLE["strings"] if rule["pattern"] != text]})
    assert any(rules.mask_string(before) != after for before, after in cases)


@pytest.mark.parametrize(
    ("key", "value", "masked"),
    [
        ("createdAt", 1795197021, 0),
        ("createdAt", None, None),
        ("createdAt", "2026-11-20", "<time>"),
        ("durationMs", 114, 0),
        ("cwd", "/srv/x", "<path>"),
        ("path", "src/a.py", "src/a.py"),
        ("cliVersion", "0.92.0", "<version>"),
        ("exitCode", 0, 0),
        ("exitCode", 1, 1),
        ("ok", True, True),
        ("durationMs", False, False),
    ],
)
def test_a_masked_leaf_keeps_its_type(key: str, value: object, masked: object) -> None:
    assert RULES.mask(key, value) == masked
    assert type(RULES.mask(key, value)) in (type(masked), type(value))


def test_a_duration_in_an_object_is_masked_number_by_number() -> None:
    assert normal({"duration": {"secs": 3, "nanos": 114107517}, "code": 3}) == [{"duration": {"secs": 0, "nanos": 0}, "code": 3}]


def test_uuids_are_named_by_role_wherever_they_stand() -> None:
    first, second = normal({"note": f"see {A}", "item": {"id": B}}, {"params": {"threadId": A}, "itemId": B, "other": C})
    assert first == {"note": "see <thread:1>", "item": {"id": "<item:1>"}}
    assert second == {"params": {"threadId": "<thread:1>"}, "itemId": "<item:1>", "other": "<uuid:1>"}


def test_paths_below_a_known_directory_keep_their_rest() -> None:
    (value,) = normal(
        {"cwd": "/srv/x", "changes": {"/srv/x/a.txt": 1}, "text": "cat /srv/x/b; ls /srv/xy", "path": "/etc/passwd"}
    )
    assert value == {
        "cwd": "<path:1>",
        "changes": {"<path:1>/a.txt": 1},
        "text": "cat <path:1>/b; ls /srv/xy",
        "path": "<path>",
    }


def test_headers_are_masked_by_name_and_the_path_of_a_request_is_none_of_ours() -> None:
    request = {
        "method": "POST",
        "path": "/v1/responses",
        "headers": [["Content-Length", "17"], ["host", "h:1"], ["session_id", A]],
    }
    normaliser = Normaliser(TABLE)
    normaliser.learn(request)
    assert normaliser.payload("request", request) == {
        "method": "POST",
        "path": "/v1/responses",
        "headers": [["Content-Length", "<length>"], ["host", "<host>"], ["session_id", "<thread:1>"]],
    }


def test_request_ids_are_named_by_method_and_by_side() -> None:
    normaliser = Normaliser(TABLE)
    ids = [
        normaliser.message(message, sender)["id"]
        for message, sender in [
            ({"id": 7, "method": "turn/start"}, "client"),
            ({"id": 7, "method": "item/tool/call"}, "server"),
            ({"id": 7, "result": {}}, "client"),
            ({"id": 7, "result": {}}, "server"),
            ({"id": "7", "result": {}}, "server"),
            ({"id": "x", "method": "turn/start"}, "client"),
            ({"id": None, "error": {}}, "server"),
        ]
    ]
    assert ids == [
        "<id:turn/start:1>",
        "<server-id:item/tool/call:1>",
        "<server-id:item/tool/call:1>",
        "<id:turn/start:1>",
        "<id:?>",
        "<id:turn/start:2>",
        None,
    ]


def test_a_notification_names_a_request_of_the_server_as_its_reply_does() -> None:
    """Requests of two threads may be numbered in another order by the next run."""

    def run(first: str, other: str) -> list[Any]:
        normaliser = Normaliser(TABLE)
        for number, method in enumerate((first, other)):
            normaliser.message({"id": number, "method": method, "params": {}}, "server")
        number = (first, other).index("a/ask")
        told = {"method": "serverRequest/resolved", "params": {"threadId": "t", "requestId": number}}
        return [normaliser.message(told, "server"), normaliser.message({**told, "params": {"requestId": 7}}, "server")]

    assert run("a/ask", "b/ask") == run("b/ask", "a/ask")
    assert [each["params"]["requestId"] for each in run("a/ask", "b/ask")] == ["<server-id:a/ask:1>", 7]


def test_an_id_that_is_used_twice_answers_in_order() -> None:
    normaliser = Normaliser(TABLE)
    for method in ("first", "second"):
        normaliser.message({"id": 1, "method": method}, "client")
    assert [normaliser.message({"id": 1, "result": {}}, "server")["id"] for _ in range(2)] == ["<id:first:1>", "<id:second:1>"]


IDS = st.lists(st.integers(0, 3), min_size=1, max_size=12)


def _run(ids: list[int], names: list[str]) -> list[Any]:
    return [{"threadId": names[number], "note": f"about {names[number]}"} for number in ids]


@given(IDS)
def test_two_runs_with_other_ids_are_equal(ids: list[int]) -> None:
    one, other = ([str(uuid.UUID(int=seed * 100 + number, version=4)) for number in range(4)] for seed in (1, 2))
    assert normal(*_run(ids, one)) == normal(*_run(ids, other))


@given(IDS, st.data())
def test_a_run_in_which_one_id_is_wrong_is_not_equal(ids: list[int], data: st.DataObject) -> None:
    names = [str(uuid.UUID(int=number + 1, version=4)) for number in range(6)]
    right = _run(ids, names)
    wrong = _run(ids, names)
    spot = data.draw(st.integers(0, len(ids) - 1))
    wrong[spot]["threadId"] = names[data.draw(st.sampled_from([n for n in range(5) if n != ids[spot]]))]
    assert normal(*right) != normal(*wrong)


def test_the_members_of_a_hash_map_have_no_order_and_those_of_other_objects_have() -> None:
    one = {"config": {"b": {"d": 1, "c": [{"y": 2, "x": 3}]}, "a": 4}, "other": {"b": 1, "a": 2}}
    other = {"config": {"a": 4, "b": {"c": [{"x": 3, "y": 2}], "d": 1}}, "other": {"b": 1, "a": 2}}
    turned = {"config": one["config"], "other": {"a": 2, "b": 1}}
    assert repr(normal(one)) == repr(normal(other))
    assert repr(normal(one)) != repr(normal(turned))


@given(st.lists(st.sampled_from([A, A.upper(), "-", "0", "f" * 8, "-abcd", "g", "é", "/tmp/a-b-c-d-e", "٣"])).map("".join))
def test_a_quick_look_for_uuids_finds_what_a_thorough_one_finds(text: str) -> None:
    assert RULES.uuids(text) == re.findall(UUID_FORM, text)


ABSOLUTE = ["/srv", "~", "~/x", "C:\\x", "c:/x", "\\\\host\\x"]
RELATIVE = ["", "srv/x", "C:", "C:x", "1:/x", "é:/x", "\\x", ":/x"]


@pytest.mark.parametrize(("path", "absolute"), [*((path, True) for path in ABSOLUTE), *((path, False) for path in RELATIVE)])
def test_only_an_absolute_path_is_masked_by_its_key(path: str, absolute: bool) -> None:
    assert RULES.mask("cwd", path) == ("<path>" if absolute else path)
    assert list(RULES.roots("cwd", path)) == ([path.rstrip("/\\")] if absolute and len(path) > 1 else [])
