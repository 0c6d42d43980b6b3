"""Tool calls in the notations that the proxy declares (docs/proxy.md, `tool_calls`), wherever the stream is cut.

Source: docs/contract/payloads.md, the form of a call; the statements apply to each dialect in its own markup.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.proxy.collector import subject_of
from codex_replay.plugin.proxy.dialects import DIALECTS, Dialect, DialectVector, vectors
from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from codex_replay.plugin.proxy.vectors import Outcome
from suites.proxy.answers import read
from suites.proxy.expected import ENDPOINTS, NOTE, WORKS, tool
from suites.proxy.found_calls import compared, mistakes, same, squeezed
from suites.proxy.saying import must_be_answered

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
    wanted = Outcome(vector.calls, vector.output)
    if same(answer.calls, wanted) and squeezed(answer.text) == squeezed(vector.output):
        return
    begin, end = dialect.open.strip(), dialect.close.strip()
    if same(answer.calls, wanted) and begin in answer.text and begin not in vector.output:
        first = (
            f"The text has markup of an incomplete call (dialect {dialect.id}). "
            "Hold back a block until its end, and drop the block if the stream ends first."
        )
    else:
        first = f"{' '.join(mistakes(answer, [wanted], (begin, end)))} The dialect is {dialect.id}."
    raise AssertionError(f"{first}\nThe vector {vector.id}{where}: {vector.why}\n{compared(answer, [wanted], vector.text)}")


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
