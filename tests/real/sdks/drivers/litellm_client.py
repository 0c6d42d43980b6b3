"""litellm's functions for the Responses API, asynchronous when the answer is streamed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import litellm
from drive import ADD, MODEL, PIXEL, main
from pydantic import BaseModel


class Sum(BaseModel):
    total: int


async def ask(url: str, streamed: bool, **body: Any) -> Any:
    """Send one request in the way that is asked for; return the response."""
    body |= {"model": f"openai/{MODEL}", "api_base": url, "api_key": "sk-1", "max_retries": 0}
    if not streamed:
        return litellm.responses(**body)
    last = [event async for event in await litellm.aresponses(**body, stream=True)][-1]
    return last.response


async def agent(url: str, streamed: bool) -> str:
    """Call the tools that the model asks for until it answers."""
    items: list[Any] = [{"role": "user", "content": "2 + 3?"}]
    while True:
        ask_for = {"input": items, "tools": [ADD], "include": ["reasoning.encrypted_content"], "store": False}
        output = [item.model_dump(exclude_none=True) for item in (await ask(url, streamed, **ask_for)).output]
        items += output
        calls = [item for item in output if item["type"] == "function_call"]
        if not calls:
            return str(output[-1]["content"][0]["text"])
        for call in calls:
            given = json.loads(call["arguments"])
            items.append({"type": "function_call_output", "call_id": call["call_id"], "output": str(given["a"] + given["b"])})


async def one(kind: str, url: str, streamed: bool) -> Any:
    if kind in ("tools", "parallel", "reasoning"):
        return await agent(url, streamed)
    if kind == "structured":
        response = await ask(url, streamed, input="hi", text_format=Sum)
        return Sum.model_validate_json(response.output[0].content[0].text).total
    parts = [{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": PIXEL, "detail": "auto"}]
    response = await ask(url, streamed, input=[{"role": "user", "content": parts}] if kind == "image" else "hi")
    if kind == "refusal":
        return response.output[0].content[0].refusal
    if kind == "incomplete":
        return f"{response.status}: {response.incomplete_details.reason}"
    return f"failed: {response.error['code']}" if response.status == "failed" else response.output[0].content[0].text


main(lambda kind, url, streamed: asyncio.run(one(kind, url, streamed)))
