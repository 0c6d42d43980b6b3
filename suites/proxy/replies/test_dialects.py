"""Tool calls in the notations that the proxy declares (docs/proxy.md, `tool_calls`), wherever the stream is cut.

Source: docs/contract/payloads.md, the form of a call; the statements apply to each dialect in its own markup.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin.proxy.collector import subject_of
from codex_replay.plugin.proxy.dialects import DIALECTS, Dialect, DialectVector, vectors
from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from suites.proxy.answers import read
from suites.proxy.expected import ENDPOINTS, NOTE, WORKS, tool
from suites.proxy.found_calls import squeezed
from suites.proxy.saying import must_be, must_be_answered

pytestmark = [pytest.mark.proxy_profile(WORKS), pytest.mark.needs("text-tools")]
#: The name of the vector that the cases cut after each of its characters.
CUT = "text-around"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make the cases of each dialect that the proxy declares."""
    dialects = subject_of(metafunc.config).tool_calls
    if "vector" in metafunc.fixturenames:
        pairs = [(dialect, vector) for dialect in dialects for vector in vectors(dialect)]
        cases = [pytest.param(d, v, id=f"{d.id}-{v.id}", marks=says([v.text])) for d, v in pairs]
        metafunc.parametrize(("dialect", "vector"), cases)
    else:
        cases = []
        for dialect in dialects:
            text = cut_one(dialect).text
            turns = [{"items": [{"type": "text", "text": text, "deltas": [text[:at], text[at:]]}]} for at in range(1, len(text))]
            cases.append(pytest.param(dialect, id=dialect.id, marks=pytest.mark.model(turns=turns)))
        metafunc.parametrize("dialect", cases)


def says(pieces: list[str]) -> pytest.MarkDecorator:
    """Return the model's item for a text that is streamed character by character."""
    text = "".join(pieces)
    return pytest.mark.model({"type": "text", "text": text, "deltas": list(text)})


def cut_one(dialect: Dialect) -> DialectVector:
    """Return the test text that the cases cut after each of its characters."""
    return next(vector for vector in vectors(dialect) if vector.id == CUT)


def ask(proxy: Proxy, endpoint: str, dialect: Dialect, stream: bool) -> Exchange:
    """Send a request with the tools of the vectors; if the proxy has several dialects, tell it the dialect of the case."""
    env = {} if dialect == DIALECTS["tool_call"] else {"PROXY_TOOL_CALLS": dialect.data()}
    tools = [tool(endpoint), tool(endpoint, "saveNote", NOTE)]
    return proxy.post(endpoint, {"tools": tools, "stream": stream}, ok=False, env=env)


def judge(done: Exchange, vector: DialectVector, dialect: Dialect, where: str = "") -> None:
    """Check that an answer has the outcome that a vector states."""
    __tracebackhide__ = True
    must_be_answered(done, 200)
    answer = read(done)
    of = f"of {vector.text!r}{where} (dialect {dialect.id}: {vector.why})"
    try:
        calls = [(call.name, json.loads(call.arguments)) for call in answer.calls]
    except ValueError:
        raise AssertionError(f"The arguments of the calls {of} must be JSON, but they are {answer.calls}.") from None
    must_be(f"The calls {of}", calls, list(vector.calls))
    if dialect.open.strip() in answer.text and dialect.open.strip() not in vector.output:
        raise AssertionError(
            f"The text {of} has markup of an incomplete call (dialect {dialect.id}): {answer.text!r}. Hold back a block "
            "until its end, and drop the block if the stream ends first."
        )
    must_be(f"The text {of}, runs of white space as one blank,", squeezed(answer.text), squeezed(vector.output))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("dialect-calls", "PAY-98", "PAY-99", "PAY-100")
def test_the_calls(proxy: Proxy, endpoint: str, stream: bool, dialect: Dialect, vector: DialectVector) -> None:
    """Each call in the model's text becomes a tool call for the client, and the client's text does not contain its markup."""
    judge(ask(proxy, endpoint, dialect, stream), vector, dialect)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("dialect-cuts", "PAY-98", "PAY-100")
def test_every_cut(proxy: Proxy, endpoint: str, dialect: Any) -> None:
    """The model streams a text with a call in two parts; the outcome is the same for each place of the cut."""
    vector = cut_one(dialect)
    for at in range(1, len(vector.text)):
        judge(ask(proxy, endpoint, dialect, True), vector, dialect, f", cut after character {at},")
