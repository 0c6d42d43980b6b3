"""The URL of the client's requests, and the command line of the client.

Source: docs/contract/lite.md, "Overview"; docs/lite-client.md.
"""

from __future__ import annotations

import pytest

from codex_replay.plugin.lite_client.fixture import LiteClient
from suites.lite_client.exact import ENDPOINT, METHOD
from suites.lite_client.expected import API_KEY, CHATGPT, user_texts


@pytest.mark.spec("endpoint-chatgpt", "LITE-02")
def test_endpoint_under_chatgpt(lite_client: LiteClient) -> None:
    """For a prompt, the client sends one POST to `<base URL>/responses`."""
    run = lite_client("Hello", script=["Hi"], auth=CHATGPT)
    assert run.text() == "Hi"
    assert [(r.method, r.path) for r in run.requests] == [(METHOD, f"/backend-api/codex{ENDPOINT}")]


@pytest.mark.spec("endpoint-api-key", "LITE-02")
def test_endpoint_under_an_api_key(lite_client: LiteClient) -> None:
    """The client uses any base URL unchanged and adds no part of ChatGPT's path."""
    run = lite_client("Hello", script={"auth": "api_key", "turns": ["Hi"]}, auth=API_KEY, base="/v1")
    assert run.text() == "Hi"
    assert [(r.method, r.path) for r in run.requests] == [(METHOD, f"/v1{ENDPOINT}")]


@pytest.mark.spec("prompt-whole", source="docs/lite-client.md", says="The prompt is the last argument; it is sent as it stands")
def test_the_prompt_is_sent_as_it_stands(lite_client: LiteClient) -> None:
    """The model gets the quotes, newlines, backslashes and non-ASCII characters of the prompt in one message of the user."""
    prompt = "Say \"añ😀\",\n\tthen $HOME, %s, C:\\dir and '--help'."
    run = lite_client(prompt, script=["ok"])
    run.text()
    assert user_texts(run.turns[0]) == [prompt]


@pytest.mark.spec("text-on-stdout", source="docs/lite-client.md", says="On success, stdout has only the final text")
def test_the_final_text_alone_is_on_stdout(lite_client: LiteClient) -> None:
    """The client prints the final text unchanged to stdout, with its newlines and non-ASCII characters."""
    text = "First line\n\n  second: añ😀 \\n not a newline"
    assert lite_client("Hello", script=[text]).text() == text
