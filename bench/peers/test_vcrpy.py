"""The agent tested with vcrpy, with pytest-recording."""

import os

import openai
import pytest
from agent import run, stream

url = os.environ["MODEL_URL"]


@pytest.fixture(scope="module")
def vcr_config():
    return {"match_on": ["method", "uri", "body"], "filter_headers": ["authorization"]}


@pytest.mark.vcr
def test_text():
    assert run(url, "Hi") == "Hello."


@pytest.mark.vcr
def test_stream():
    assert stream(url, "Hi") == "Hello."


@pytest.mark.vcr
def test_tool():
    assert run(url, "1 + 2?") == "It is 3."


@pytest.mark.vcr
def test_limit():
    assert run(url, "limit") == "Hello."


@pytest.mark.vcr
def test_refused():
    with pytest.raises(openai.BadRequestError, match="Too long"):
        run(url, "long")
