"""instructor over the Responses API: it extracts values, so every answer is one."""

from __future__ import annotations

from typing import Any

import instructor
import openai
from drive import MODEL, main
from pydantic import BaseModel


class Sum(BaseModel):
    total: int


def one(kind: str, url: str, streamed: bool) -> Any:
    sdk = openai.OpenAI(base_url=url, api_key="sk-1", max_retries=0)
    client: Any = instructor.from_openai(sdk, mode=instructor.Mode.RESPONSES_TOOLS)
    ask: dict[str, Any] = {"model": MODEL, "input": "hi", "response_model": Sum, "max_retries": 0}
    if streamed:
        parts = [part.total for part in client.responses.create_partial(**ask)]
        return parts[-1] if parts else "no value"
    return client.responses.create(**ask).total


main(one)
