"""The published comparison of behaviour: its Markdown is what its JSON says, and it tells what is known to have changed."""

from __future__ import annotations

import json
from pathlib import Path

from codex_replay.protocol.behaviour.markdown import markdown, to_json

PLACE = Path(__file__).resolve().parents[3] / "reports" / "drift" / "behaviour-0.92.0-0.116.0.json"


def test_the_published_markdown_is_what_its_json_says() -> None:
    text = PLACE.read_text(encoding="utf-8")
    found = json.loads(text)
    assert text == to_json(found)
    assert PLACE.with_suffix(".md").read_text(encoding="utf-8") == markdown(found)


def test_the_published_comparison_has_found_what_is_known() -> None:
    """The end of codex/event/*, and the reply to item/tool/call that later versions do not hear."""
    found = json.loads(PLACE.read_text(encoding="utf-8"))
    rows = {(each["rule"], each["method"], each.get("note", "")): each for each in found["findings"]}
    events = next(each for (rule, method, _), each in rows.items() if (rule, method) == ("vanished", "codex/event/*"))
    assert len(events["methods"]) > 50
    reply = rows["unheard", "item/tool/call", "the client replies {output, success}"]
    assert {each["after"] for each in reply["examples"]} == {'"dynamic tool response was invalid"'}


def test_the_published_comparison_adds_up() -> None:
    """Every case is compared or stands with its reason, and what is counted is there."""
    found = json.loads(PLACE.read_text(encoding="utf-8"))
    totals, findings = found["totals"], [*found["findings"], *found["single"]]
    assert totals["racy"] == len(found["racy"])
    assert totals["compared"] + totals["not_compared"] == totals["cases"] == len(found["cases"])
    assert totals["changed"] + totals["unchanged"] == totals["compared"]
    assert (totals["findings"], totals["single_case"]) == (len(findings), len(found["single"]))
    assert len({at for each in [*findings, *found["racy"]] for at in each["cases"]}) == totals["changed"]
    assert all(each["why"] for each in found["not_compared"])
