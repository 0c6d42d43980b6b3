"""The agent tested with aimock, a program of Node.js."""

import json
import os
import subprocess

import openai
import pytest
from agent import run, stream

CALL = {"name": "add", "arguments": {"a": 1, "b": 2}}
FIXTURES = [
    {"match": {"userMessage": "Hi"}, "response": {"content": "Hello."}},
    {
        "match": {"userMessage": "1 + 2?", "hasToolResult": False},
        "response": {"toolCalls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]},
    },
    {"match": {"userMessage": "1 + 2?", "toolResultContains": "3"}, "response": {"content": "It is 3."}},
    {"match": {"userMessage": "limit", "sequenceIndex": 0}, "response": {"error": {"message": "Slow down."}, "status": 429}},
    {"match": {"userMessage": "limit"}, "response": {"content": "Hello."}},
    {"match": {"userMessage": "long"}, "response": {"error": {"message": "Too long."}, "status": 400}},
]


@pytest.fixture(scope="session")
def url(tmp_path_factory):
    file = tmp_path_factory.mktemp("fixtures") / "all.json"
    file.write_text(json.dumps({"fixtures": FIXTURES}))
    argv = ["node", os.environ["AIMOCK"], "-p", "0", "-f", str(file.parent)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        line = ""
        while "listening on" not in line:
            line = process.stdout.readline()
            assert line, "aimock ended"
        yield line.split()[-1] + "/v1"
        process.kill()


def test_text(url):
    assert run(url, "Hi") == "Hello."


def test_stream(url):
    assert stream(url, "Hi") == "Hello."


def test_tool(url):
    assert run(url, "1 + 2?") == "It is 3."


def test_limit(url):
    assert run(url, "limit") == "Hello."


def test_refused(url):
    with pytest.raises(openai.BadRequestError, match="Too long"):
        run(url, "long")
