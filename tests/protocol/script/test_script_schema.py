"""The published JSON Schema of scripts: it is of today's keys, takes the scripts of the documentation, and refuses mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from codex_replay.protocol.script.script import parse
from tests.protocol.script.test_script import BAD
from tests.tools.script_schema import schema

DOCS = Path(__file__).parents[3] / "docs"
PUBLISHED = json.loads((DOCS / "schema" / "script.schema.json").read_text())
SCRIPTS = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", (DOCS / "scripts.md").read_text(), re.DOTALL)]
#: Mistakes that only the reader sees: of two keys that do not go together, of texts, and of what the fakes check.
UNSEEN = {
    "deltas do not join",
    "deltas of an object",
    "more after the end",
    "error without status",
    "items with a status",
    "a fault without effect",
    "a group that is not there",
    "a group that no output has",
    "two patterns",
}


def valid(value: Any) -> bool:
    return jsonschema.Draft202012Validator(PUBLISHED).is_valid(value)


def test_it_is_of_todays_keys() -> None:
    command = "python -m tests.tools.script_schema > docs/schema/script.schema.json"
    assert schema() == PUBLISHED, f"The published schema is of other keys. Run: {command}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: json.dumps(script)[:40])
def test_the_scripts_of_the_page_are_valid(script: Any) -> None:
    whole = script if isinstance(script, list) or script.keys() & {"turns", "auth"} else {"turns": [script]}
    parse(whole)
    assert valid(whole)


def test_a_script_may_name_its_schema() -> None:
    script = {"$schema": "schema/script.schema.json", "turns": ["Hello."]}
    parse(script)
    assert valid(script)


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_refused(name: str) -> None:
    assert valid(BAD[name][0]) == (name in UNSEEN)
