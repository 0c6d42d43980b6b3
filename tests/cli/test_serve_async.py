"""`codex-replay serve` with many clients at a time, driven by asyncio."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.async_client import ask

pytestmark = pytest.mark.asyncio

COMMAND = (sys.executable, "-c", "from codex_replay.cli.main import main; main()", "serve", "--json")


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Serve a script with an answer for each of ten prompts; give the process and its base URL."""
    script = {"turns": [{"match": f"<{n}>", "items": [f"answer {n}"]} for n in range(10)]}
    (tmp_path / "script.json").write_text(json.dumps(script))
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "--script", str(tmp_path / "script.json"), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield process, json.loads(await process.stdout.readline())["url"] + "/v1"
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_clients_side_by_side(server: tuple[asyncio.subprocess.Process, str]) -> None:
    process, url = server
    assert await asyncio.gather(*(ask(url, f"<{n}>") for n in range(10))) == [f"answer {n}" for n in range(10)]
    assert process.stdout is not None
    told = [json.loads(await process.stdout.readline()) for _ in range(10)]
    assert sorted(entry["turn"] for entry in told) == list(range(10))
    process.terminate()
    assert await process.wait() == 0
