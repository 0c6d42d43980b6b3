"""The body of a request, field by field. Source: docs/contract/lite.md, "Request Body (Responses API)"."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.lite_client.fixture import LiteClient
from suites.lite_client.exact import DEFAULT_MODEL, FIELDS, VERBOSITY
from suites.lite_client.expected import ADD, call, then, user_texts
from suites.lite_protocol import FIXED

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"sum": {"type": "number"}},
    "required": ["sum"],
    "additionalProperties": False,
}


def body(lite_client: LiteClient, **given: Any) -> dict[str, Any]:
    """Run the client and return the body of its request."""
    run = lite_client("Hello", script=["Hi"], **given)
    run.text()
    found: dict[str, Any] = run.turns[0].body
    return found


@pytest.mark.parametrize("model", [DEFAULT_MODEL, "gpt-5.2"])
@pytest.mark.spec("body-model", "LITE-31")
def test_model(lite_client: LiteClient, model: str) -> None:
    """The request has the model of LITE_MODEL."""
    assert body(lite_client, env={"LITE_MODEL": model})["model"] == model


@pytest.mark.spec("body-model-default", "LITE-31")
def test_model_unless_one_is_named(lite_client: LiteClient) -> None:
    """Without LITE_MODEL the request has the default model of the specification."""
    assert body(lite_client)["model"] == DEFAULT_MODEL


@pytest.mark.spec("body-instructions", "LITE-32")
def test_instructions(lite_client: LiteClient) -> None:
    """The client sends the system text in `instructions` of each request and not in `input`, also in a follow-up."""
    run = lite_client(script=then(call()), tools=ADD, env={"LITE_INSTRUCTIONS": "Speak like a pirate."})
    run.text()
    assert [request.body["instructions"] for request in run.turns] == ["Speak like a pirate."] * 2
    assert "pirate" not in str([request.body["input"] for request in run.turns])


@pytest.mark.spec("body-input", "LITE-33")
def test_input(lite_client: LiteClient) -> None:
    """In the first request, `input` is a list with one item, the user's message."""
    run = lite_client("Hello", script=["Hi"])
    run.text()
    assert isinstance(run.turns[0].body["input"], list)
    assert len(run.turns[0].body["input"]) == 1
    assert user_texts(run.turns[0]) == ["Hello"]


@pytest.mark.parametrize("field", FIXED)
@pytest.mark.spec("body-field", "LITE-35", "LITE-36", "LITE-37", "LITE-38", "LITE-39", "LITE-40")
def test_field(lite_client: LiteClient, field: str) -> None:
    """Every request has this field with its fixed value."""
    found = body(lite_client).get(field)
    assert (type(found), found) == (type(FIXED[field]), FIXED[field])


@pytest.mark.spec("body-cache-key", "LITE-41")
def test_prompt_cache_key(lite_client: LiteClient) -> None:
    """`prompt_cache_key` is the session_id, in a follow-up too."""
    run = lite_client(script=then(call()), tools=ADD)
    run.text()
    assert [r.body.get("prompt_cache_key") for r in run.turns] == [run.turns[0].header("session_id")] * 2


@pytest.mark.spec("body-no-previous-response", "LITE-44")
def test_no_previous_response_id(lite_client: LiteClient) -> None:
    """No request has `previous_response_id`; the whole conversation is in `input`."""
    run = lite_client(script=then(call()), tools=ADD)
    assert len(run.turns) == 2, run.report_on()
    assert [r for r in run.turns if "previous_response_id" in r.body] == []


@pytest.mark.spec("body-text-format", "LITE-42")
def test_output_schema(lite_client: LiteClient) -> None:
    """The client sends an output schema in `text.format`, which may also have a name, as in Codex."""
    text = body(lite_client, schema=SCHEMA)["text"]
    text["format"].pop("name", None)
    assert text == {"verbosity": VERBOSITY, "format": {"type": "json_schema", "strict": True, "schema": SCHEMA}}
    assert text["format"]["strict"] is True, "strict must be true; 1 is another type"


@pytest.mark.spec("body-text-plain", "LITE-42")
def test_no_output_schema(lite_client: LiteClient) -> None:
    """Without an output schema there is no JSON `format`; `text` may be absent."""
    text = body(lite_client).get("text", {"verbosity": VERBOSITY})
    assert text.get("verbosity") == VERBOSITY
    assert text.get("format", {"type": "text"}) == {"type": "text"}


@pytest.mark.spec(
    "body-known-fields",
    "LITE-31",
    "LITE-32",
    "LITE-33",
    "LITE-34",
    "LITE-35",
    "LITE-36",
    "LITE-37",
    "LITE-38",
    "LITE-39",
    "LITE-40",
    "LITE-41",
    "LITE-42",
)
def test_no_other_fields(lite_client: LiteClient) -> None:
    """A request has only the fields of the specification."""
    assert sorted(set(body(lite_client, tools=ADD)) - set(FIELDS)) == []
