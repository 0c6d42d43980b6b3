"""langchain-openai over the Responses API."""

from __future__ import annotations

from typing import Any

from drive import MODEL, PIXEL, main
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class Sum(BaseModel):
    total: int


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def ask(model: Any, streamed: bool, messages: list[Any]) -> Any:
    """Return the answer of the model; a streamed one is joined."""
    if not streamed:
        return model.invoke(messages)
    whole: Any = None
    for chunk in model.stream(messages):
        whole = chunk if whole is None or isinstance(chunk, Sum) else whole + chunk
    return whole


def one(kind: str, url: str, streamed: bool) -> Any:
    more: dict[str, Any] = {"include": ["reasoning.encrypted_content"], "store": False} if kind == "reasoning" else {}
    model: Any = ChatOpenAI(model=MODEL, base_url=url, api_key="sk-1", max_retries=0, use_responses_api=True, **more)
    if kind == "structured":
        return ask(model.with_structured_output(Sum), streamed, [HumanMessage("hi")]).total
    image = [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    messages: list[Any] = [HumanMessage(image if kind == "image" else "hi")]
    if kind in ("tools", "parallel", "reasoning"):
        model = model.bind_tools([add])
    while True:
        answer = ask(model, streamed, messages)
        if not answer.tool_calls:
            break
        messages.append(answer)
        messages += [ToolMessage(str(add.invoke(call["args"])), tool_call_id=call["id"]) for call in answer.tool_calls]
    if kind == "refusal":
        return (
            next((part["refusal"] for part in answer.content if part.get("type") == "refusal"), None)
            or answer.additional_kwargs["refusal"]
        )
    status = answer.response_metadata.get("status")
    if status != "completed":
        return f"{status}: {(answer.response_metadata.get('incomplete_details') or {}).get('reason')}"
    return answer.text if isinstance(answer.text, str) else answer.text()


main(one)
