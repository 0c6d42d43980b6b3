"""The OpenAI client in tests of an outside project, with `codex_backend`: asynchronous ones, and those of docs/fixtures.md."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.sdks.client_venv import python_with
from tests.support.suite_run import QUICK

pytest_plugins = ["pytester"]

TEST = """
import asyncio

import openai
import pytest_asyncio


@pytest_asyncio.fixture
async def client(codex_backend):
    async with openai.AsyncOpenAI(base_url=codex_backend.url + "/v1", api_key="sk-1", max_retries=0) as client:
        yield client


async def test_a_stream(client, codex_backend):
    codex_backend.script(["Hello, world."])
    stream = await client.responses.create(model="m", input="Hi", stream=True)
    events = [event async for event in stream]
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Hello, world."
    assert codex_backend.requests[0].header("authorization") == "Bearer sk-1"


async def test_side_by_side(client, codex_backend):
    codex_backend.script([{"match": f"<{n}>", "items": [f"answer {n}"]} for n in range(8)])
    found = await asyncio.gather(*(client.responses.create(model="m", input=f"<{n}>") for n in range(8)))
    assert [response.output_text for response in found] == [f"answer {n}" for n in range(8)]


async def test_cancelled_in_mid_stream(client, codex_backend):
    held = {"match": "left", "items": ["never", {"type": "gate", "name": "middle"}, "whole"]}
    codex_backend.script([held, {"match": "stays", "items": ["Still here."]}])

    async def listen():
        async for _ in await client.responses.create(model="m", input="left", stream=True):
            pass

    left = asyncio.create_task(listen())
    assert await asyncio.to_thread(codex_backend.wait_at_gate, "middle")
    left.cancel()
    assert (await asyncio.gather(left, return_exceptions=True))[0].__class__ is asyncio.CancelledError
    assert (await client.responses.create(model="m", input="stays")).output_text == "Still here."
    codex_backend.release("middle")
"""

#: The same under anyio's plugin, which the openai package brings along.
ANYIO = """
import anyio
import openai
import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def client(codex_backend):
    async with openai.AsyncOpenAI(base_url=codex_backend.url + "/v1", api_key="sk-1", max_retries=0) as client:
        yield client


async def test_side_by_side(client, codex_backend):
    codex_backend.script([{"match": f"<{n}>", "items": [f"answer {n}"]} for n in range(8)])
    found = {}

    async def ask(n):
        found[n] = (await client.responses.create(model="m", input=f"<{n}>")).output_text

    async with anyio.create_task_group() as group:
        for n in range(8):
            group.start_soon(ask, n)
    assert found == {n: f"answer {n}" for n in range(8)}


async def test_cancelled_in_mid_stream(client, codex_backend):
    held = {"match": "left", "items": ["never", {"type": "gate", "name": "middle"}, "whole"]}
    codex_backend.script([held, {"match": "stays", "items": ["Still here."]}])

    async def listen():
        async for _ in await client.responses.create(model="m", input="left", stream=True):
            pass

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        assert await anyio.to_thread.run_sync(codex_backend.wait_at_gate, "middle")
        group.cancel_scope.cancel()
    assert (await client.responses.create(model="m", input="stays")).output_text == "Still here."
    codex_backend.release("middle")
"""


def _packages() -> str:
    """Return the folder of the client's packages."""
    code = "import openai, os; print(os.path.dirname(os.path.dirname(openai.__file__)))"
    done = subprocess.run([python_with("openai-3"), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_async_client_under_anyio(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pytest-asyncio: the plugin of anyio runs the tests and the fixtures."""
    pytester.makepyfile(test_anyio=ANYIO)
    pytester.makeconftest(f"import sys\nsys.path.append({_packages()!r})\npytest_plugins = ['anyio.pytest_plugin']\n")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", QUICK)
    pytester.run(sys.executable, "-m", "pytest", "-q", "-p", "no:asyncio").assert_outcomes(passed=2)


def test_the_async_client_in_a_project_of_its_own(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's packages come after ours on the path, so that nothing of ours is another version."""
    where = _packages()
    page = (Path(__file__).parents[3] / "docs" / "fixtures.md").read_text()
    shown = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "import openai" in block]
    pytester.makepyfile(test_outside=TEST, test_shown="\n".join(shown))
    pytester.makeconftest(f"import sys\nsys.path.append({where!r})\n")
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", QUICK)
    pytester.run(sys.executable, "-m", "pytest", "-q").assert_outcomes(passed=5)
