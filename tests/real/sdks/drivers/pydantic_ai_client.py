"""pydantic-ai with its model for the Responses API."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
from drive import MODEL, PIXEL, main
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class Sum(BaseModel):
    total: int


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def one(kind: str, url: str, streamed: bool) -> Any:
    client = openai.AsyncOpenAI(base_url=url, api_key="sk-1", max_retries=0)
    model = OpenAIResponsesModel(MODEL, provider=OpenAIProvider(openai_client=client))
    tools = [add] if kind in ("tools", "parallel", "reasoning") else []
    output: Any = Sum if kind == "structured" else str
    agent: Any = Agent(model, tools=tools, output_type=output, retries=0)
    prompt: Any = ["hi", BinaryContent.from_data_uri(PIXEL)] if kind == "image" else "hi"
    if not streamed:
        found = (await agent.run(prompt)).output
    else:
        async with agent.run_stream(prompt) as result:
            found = await result.get_output()
    return found.total if kind == "structured" else found


main(lambda kind, url, streamed: asyncio.run(one(kind, url, streamed)))
