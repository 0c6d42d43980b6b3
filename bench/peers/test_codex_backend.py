"""The agent tested with the fixture `codex_backend`."""

import openai
import pytest
from agent import run, stream

from codex_replay import ScriptBuilder


@pytest.fixture
def url(codex_backend):
    return codex_backend.url + "/v1"


def test_text(codex_backend, url):
    codex_backend.script(["Hello."])
    assert run(url, "Hi") == "Hello."


def test_stream(codex_backend, url):
    codex_backend.script(["Hello."])
    assert stream(url, "Hi") == "Hello."


def test_tool(codex_backend, url):
    script = ScriptBuilder()
    script.turn().call("add", a=1, b=2)
    script.turn().when(tool="3").text("It is 3.")
    codex_backend.script(script)
    assert run(url, "1 + 2?") == "It is 3."


def test_limit(codex_backend, url):
    codex_backend.script([{"fault": {"name": "http_429", "retry_after": 0}}, "Hello."])
    assert run(url, "Hi") == "Hello."


def test_refused(codex_backend, url):
    codex_backend.script([{"status": 400, "error": {"message": "Too long.", "type": "invalid_request_error"}}])
    with pytest.raises(openai.BadRequestError, match="Too long"):
        run(url, "Hi")
