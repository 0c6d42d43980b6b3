"""openai-agents, with its model for the Responses API and its loop."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
from agents import Agent, ModelSettings, OpenAIResponsesModel, RunConfig, Runner, function_tool
from drive import MODEL, PIXEL, main
from pydantic import BaseModel


class Sum(BaseModel):
    total: int


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def one(kind: str, url: str, streamed: bool) -> Any:
    client = openai.AsyncOpenAI(base_url=url, api_key="sk-1", max_retries=0)
    more = (
        ModelSettings(store=False, response_include=["reasoning.encrypted_content"]) if kind == "reasoning" else ModelSettings()
    )
    agent: Any = Agent(
        name="a",
        model=OpenAIResponsesModel(MODEL, openai_client=client),
        model_settings=more,
        tools=[add] if kind in ("tools", "parallel", "reasoning") else [],
        output_type=Sum if kind == "structured" else None,
    )
    parts = [{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": PIXEL, "detail": "auto"}]
    given: Any = [{"role": "user", "content": parts}] if kind == "image" else "hi"
    quiet = RunConfig(tracing_disabled=True)
    if streamed:
        result: Any = Runner.run_streamed(agent, given, run_config=quiet)
        async for _ in result.stream_events():
            pass
    else:
        result = await Runner.run(agent, given, run_config=quiet)
    if kind == "refusal":
        return result.raw_responses[-1].output[0].content[0].refusal
    return result.final_output.total if kind == "structured" else result.final_output


main(lambda kind, url, streamed: asyncio.run(one(kind, url, streamed)))
