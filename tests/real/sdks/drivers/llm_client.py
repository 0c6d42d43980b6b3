"""llm with its model class for the Responses API."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from typing import Any

os.environ["LLM_USER_PATH"] = tempfile.mkdtemp()  # it keeps settings and logs there

import llm
from drive import MODEL, PIXEL, main
from llm.default_plugins.openai_models import Responses
from pydantic import BaseModel


class Sum(BaseModel):
    total: int


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def one(kind: str, url: str, streamed: bool) -> Any:
    model: Any = Responses(
        MODEL, key="sk-1", api_base=url, vision=True, supports_schema=True, supports_tools=True, reasoning=True
    )
    more: dict[str, Any] = {"stream": streamed}
    if kind in ("tools", "parallel", "reasoning"):
        return model.chain("2 + 3?", tools=[add], **more).text()
    if kind == "structured":
        return json.loads(model.prompt("hi", schema=Sum, **more).text())["total"]
    if kind == "image":
        more["attachments"] = [llm.Attachment(type="image/png", content=base64.b64decode(PIXEL.partition(",")[2]))]
    return model.prompt("hi", **more).text()


main(one)
