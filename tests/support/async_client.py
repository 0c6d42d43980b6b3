"""A small asynchronous client of the Responses backend, with asyncio's streams alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit


async def events(url: str, prompt: str) -> AsyncIterator[dict[str, Any]]:
    """Ask for a streamed response below the API base `url`; yield its events as they come."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        body = json.dumps({"model": "m", "input": prompt, "stream": True}).encode()
        head = f"POST {parts.path}/responses HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer sk-1\r\n"
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        status = await reader.readline()
        assert b" 200 " in status, status
        async for line in reader:
            if line.startswith(b"data: {"):
                event: dict[str, Any] = json.loads(line[6:])
                yield event
                if event["type"] == "response.completed":
                    return
    finally:
        writer.close()


async def ask(url: str, prompt: str) -> str:
    """Return the text of a whole answer."""
    return "".join([event["delta"] async for event in events(url, prompt) if event["type"] == "response.output_text.delta"])
