"""The scripted fake refuses requests of a wrong form in the words in which the real Codex refused them, and lives on."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_fakes.scripted.turns.review import rendered, review_output
from codex_replay.protocol import data_tables
from codex_replay.protocol.refusals import load_methods
from codex_replay.protocol.turn.limits import limits_of
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.rpc.client import Client
from tests.fakes.scripted.conversing import CLIENT
from tests.fakes.scripted.refusals import otherwise, rows
from tests.fakes.scripted.test_scripted import NEEDED, UNANSWERED

FAKE = [sys.executable, "-m", "codex_fakes.fake_codex", "app-server"]
ODD = (5, "x", [], [5], [[5]], {}, {"a": 1}, {"type": "text"}, True, None, -1, 1.5)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    home = HermeticHome(tmp_path / "home", "http://127.0.0.1:9")
    env = {**home.env, "PYTHONPATH": str(Path(__file__).parents[3])}
    client = Client(FAKE, env=env, cwd=str(home.work), timeout=60)
    client.request("initialize", {"clientInfo": CLIENT})
    yield client
    client.stop()


def test_each_wrong_form_is_refused_as_the_real_server_refuses_it(client: Client) -> None:
    assert len(rows()) > 500
    assert otherwise(client, client.request("thread/start", {})["thread"]["id"]) == []
    assert client.close() == 0


@pytest.mark.parametrize("method", sorted(load_methods().keys() - UNANSWERED - {"initialize"}))
def test_no_odd_value_ends_the_fake(method: str, client: Client) -> None:
    """Whatever stands in a member, at its top or in its list or object, every request gets an answer."""
    thread = client.request("thread/start", {})["thread"]["id"]
    members = data_tables.load("forms")["methods"].get(method, {})
    base = json.loads(json.dumps(NEEDED.get(method, {})).replace("THREAD", thread))
    for name in members:
        given = base.get(name)
        within = [{**given, key: odd} for key in given for odd in ODD] if isinstance(given, dict) else []
        for odd in (*ODD, *([odd] for odd in ODD), *within):
            answer = client.call(method, {**base, name: odd})
            assert "result" in answer or answer["error"]["code"] in (-32600, -32603), answer
    assert client.call("getUserAgent")["result"]


def test_the_forms_are_those_of_the_bundle() -> None:
    """Every method with members is there with just the members that the vendored schema has."""
    schema = json.loads(data_tables.schema()["ClientRequest.json"])
    wanted = {}
    for one in schema["oneOf"]:
        params = one["properties"].get("params", {}).get("$ref", "").rpartition("/")[2]
        members = schema["definitions"].get(params, {}).get("properties")
        if members and one["properties"]["method"]["enum"] != ["initialize"]:
            wanted[one["properties"]["method"]["enum"][0]] = set(members)
    forms = data_tables.load("forms")
    assert {method: set(members) for method, members in forms["methods"].items()} == wanted


@pytest.mark.parametrize("odd", ["abc", "", "nan", "inf", "1.5.0"])
def test_a_rate_limit_that_is_no_number_is_none(odd: str) -> None:
    used, minutes = "x-codex-primary-used-percent", "x-codex-primary-window-minutes"
    assert limits_of({used: odd, minutes: "5"}) == {}
    window = {"used_percent": 1.5, "window_minutes": None, "resets_at": None}
    assert limits_of({used: "1.5", minutes: odd}) == {"primary": window}


FINDING = {
    "title": "T", "body": "B", "confidence_score": 0.5, "priority": 1,
    "code_location": {"absolute_file_path": "/a", "line_range": {"start": 1, "end": 2}},
}  # fmt: skip


@pytest.mark.parametrize("lacking", [*FINDING, "everything"])
def test_a_review_of_another_form_is_taken_as_it_stands(lacking: str) -> None:
    """A finding that lacks a member makes the whole answer a text, and does not end the fake."""
    told = {"overall_correctness": "c", "overall_explanation": "e", "overall_confidence_score": 1}
    whole = json.dumps({**told, "findings": [FINDING]})
    assert rendered(review_output(whole), "failed").endswith("- T \u2014 /a:1-2\n  B")
    (finding,) = review_output(whole)["findings"]
    assert list(finding) == ["title", "body", "confidence_score", "priority", "code_location"]
    finding = {name: value for name, value in FINDING.items() if lacking not in (name, "everything")}
    text = json.dumps({**told, "findings": [finding]})
    assert rendered(review_output(text), "failed") == text
