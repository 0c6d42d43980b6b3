"""The OpenAI SDK, sync or async (argument `async`), with strict validation."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import openai
from drive import ADD, MODEL, PIXEL, main
from pydantic import BaseModel

ASYNC = "async" in sys.argv


class Sum(BaseModel):
    total: int


async def ask(url: str, streamed: bool, **body: Any) -> Any:
    """Send one request in the way that is asked for; return the response."""
    settings: dict[str, Any] = {"base_url": url, "api_key": "sk-1", "max_retries": 0, "_strict_response_validation": True}
    body = {"model": MODEL, **body}
    plain = "parse" if "text_format" in body else "create"
    if not ASYNC:
        client = openai.OpenAI(**settings)
        if not streamed:
            return getattr(client.responses, plain)(**body)
        with client.responses.stream(**body) as stream:
            last = list(stream)[-1]
            return stream.get_final_response() if last.type == "response.completed" else last.response
    async with openai.AsyncOpenAI(**settings) as other:
        if not streamed:
            return await getattr(other.responses, plain)(**body)
        async with other.responses.stream(**body) as events:
            last = [event async for event in events][-1]
            return await events.get_final_response() if last.type == "response.completed" else last.response


async def agent(url: str, streamed: bool) -> str:
    """Call the tools that the model asks for until it answers."""
    items: list[Any] = [{"role": "user", "content": "2 + 3?"}]
    while True:
        ask_for = {"input": items, "tools": [ADD], "include": ["reasoning.encrypted_content"], "store": False}
        response = await ask(url, streamed, **ask_for)
        items += [item.to_dict() for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return str(response.output_text)
        for call in calls:
            given = json.loads(call.arguments)
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": str(given["a"] + given["b"])})


async def one(kind: str, url: str, streamed: bool) -> Any:
    if kind in ("tools", "parallel", "reasoning"):
        return await agent(url, streamed)
    if kind == "structured":
        return (await ask(url, streamed, input="hi", text_format=Sum)).output_parsed.total
    parts = [{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": PIXEL, "detail": "auto"}]
    response = await ask(url, streamed, input=[{"role": "user", "content": parts}] if kind == "image" else "hi")
    if kind == "refusal":
        return response.output[0].content[0].refusal
    if kind == "incomplete":
        return f"{response.status}: {response.incomplete_details.reason}"
    return f"failed: {response.error.code}" if response.status == "failed" else response.output_text


main(lambda kind, url, streamed: asyncio.run(one(kind, url, streamed)))
