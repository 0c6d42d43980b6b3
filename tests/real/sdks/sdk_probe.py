"""Drive the OpenAI SDK against a backend, as strictly as it can; runs in an environment of its own and prints JSON.

python sdk_probe.py URL COUNT           each of the prompts <0>, <1>, ... by create and stream, sync and async
python sdk_probe.py URL COUNT events    the raw events of each prompt, judged by the types of the package
python sdk_probe.py URL agents          one run of the openai-agents package with a function tool
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import openai


def plain(url: str, count: int) -> dict[str, Any]:
    settings: dict[str, Any] = {"base_url": url, "api_key": "sk-1", "max_retries": 0, "_strict_response_validation": True}
    report: dict[str, Any] = {"version": openai.__version__, "sync": [], "async": []}
    client = openai.OpenAI(**settings)
    for i in range(count):
        ask: dict[str, Any] = {"model": "gpt-5.2-codex", "input": f"<{i}>"}
        response = client.responses.create(**ask)
        streamed = [event.type for event in client.responses.create(**ask, stream=True)]
        with client.responses.stream(**ask) as stream:
            helped = [event.type for event in stream]
        report["sync"].append([response.status, response.output_text, len(response.output), streamed, helped])
    report["settings"] = settings_of(client)
    report["state"] = state_of(client)
    report["models"] = [model.id for model in client.models.list()]
    report["async"] = asyncio.run(concurrently(settings, count))
    return report


def settings_of(client: openai.OpenAI) -> dict[str, Any]:
    """Ask for a structured output with many settings; return what was parsed, and the settings in the response."""
    from pydantic import BaseModel

    class Sum(BaseModel):
        total: int

    ask: dict[str, Any] = {
        "model": "gpt-5.2-codex",
        "input": "<structured>",
        "instructions": "Be brief.",
        "tools": [{"type": "function", "name": "add", "parameters": {"type": "object", "properties": {}}, "strict": True}],
        "tool_choice": {"type": "function", "name": "add"},
        "metadata": {"trace": "7"},
        "temperature": 0.5,
        "store": False,
        "text_format": Sum,
    }
    parsed = client.responses.parse(**ask)
    with client.responses.stream(**ask) as stream:
        streamed = stream.get_final_response()
    shown = {key: parsed.to_dict().get(key) for key in ("instructions", "tool_choice", "metadata", "temperature", "tools")}
    outputs = [response.output_parsed.total for response in (parsed, streamed)]
    return {**shown, "parsed": outputs, "format": parsed.to_dict()["text"]["format"]["name"]}


def state_of(client: openai.OpenAI) -> list[Any]:
    """Read, continue, list, cancel and delete stored responses."""
    ask: dict[str, Any] = {"model": "gpt-5.2-codex", "input": "<0>"}
    first = client.responses.create(**ask)
    second = client.responses.create(**ask, previous_response_id=first.id)
    listed = [item.type for item in client.responses.input_items.list(second.id)]
    background = client.responses.create(**ask, background=True)
    while background.status in ("queued", "in_progress"):
        background = client.responses.retrieve(background.id)
    again = [event.type for event in client.responses.retrieve(second.id, stream=True, starting_after=2)]
    same = client.responses.retrieve(second.id).output_text == second.output_text
    client.responses.delete(second.id)
    try:
        client.responses.retrieve(second.id)
    except openai.NotFoundError as error:
        gone = error.status_code
    model = client.models.retrieve("gpt-5.2-codex").id
    return [*conversation_of(client), listed, background.status, again[0], again[-1], same, gone, model]


def conversation_of(client: openai.OpenAI) -> list[Any]:
    """Hold a conversation, list its items and delete it; compact it where the package can."""
    made = client.conversations.create(items=[{"type": "message", "role": "user", "content": "hi"}], metadata={"a": "b"})
    client.responses.create(model="gpt-5.2-codex", input="<0>", conversation=made.id)
    items = [item.type for item in client.conversations.items.list(made.id, order="asc", limit=2)]
    added = client.conversations.items.create(made.id, items=[{"role": "user", "content": "more"}]).data[0].id
    item = client.conversations.items.retrieve(added, conversation_id=made.id)
    client.conversations.items.delete(added, conversation_id=made.id)
    changed = client.conversations.update(made.id, metadata={"a": "c"}).metadata
    compacted = ["message", "compaction"]
    if hasattr(client.responses, "compact"):
        # The reference shows messages of the user in it, which the package's own type of the list refuses when it is strict.
        lenient = openai.OpenAI(base_url=client.base_url, api_key="sk-1", max_retries=0)
        compacted = [item.type for item in lenient.responses.compact(model="gpt-5.2-codex", input="hi").output]
    return [items, item.type, changed, compacted, client.conversations.delete(made.id).deleted]


async def concurrently(settings: dict[str, Any], count: int) -> list[Any]:
    client = openai.AsyncOpenAI(**settings)

    async def one(i: int) -> list[Any]:
        ask: dict[str, Any] = {"model": "gpt-5.2-codex", "input": f"<{i}>"}
        response = await client.responses.create(**ask)
        streamed = [event.type async for event in await client.responses.create(**ask, stream=True)]
        async with client.responses.stream(**ask) as stream:
            helped = [event.type async for event in stream]
        return [response.status, response.output_text, len(response.output), streamed, helped]

    return list(await asyncio.gather(*(one(i) for i in range(count))))


def events(url: str, count: int) -> dict[str, Any]:
    """Judge the streams by the types of the package, and read them with the strict client; leave out those with newer items."""
    from typing import get_args
    from urllib.request import Request, urlopen

    from openai.types.responses import ResponseOutputItem, ResponseStreamEvent
    from pydantic import TypeAdapter, ValidationError

    def types(union: Any) -> set[str]:
        return {word for kind in get_args(get_args(union)[0]) for word in get_args(kind.model_fields["type"].annotation)}

    judge: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    known, items = types(ResponseStreamEvent), types(ResponseOutputItem)
    client = openai.OpenAI(base_url=url, api_key="sk-1", max_retries=0, _strict_response_validation=True)
    report: dict[str, Any] = {"known": sorted(known), "sent": set(), "read": set(), "newer": set(), "wrong": []}
    for i in range(count):
        ask: dict[str, Any] = {"model": "gpt-5.2-codex", "input": f"<{i}>", "include": ["reasoning.encrypted_content"]}
        headers = {"authorization": "Bearer sk-1", "content-type": "application/json"}
        with urlopen(Request(f"{url}/responses", json.dumps({**ask, "stream": True}).encode(), headers)) as answer:
            lines = answer.read().decode().split("\n")
        found = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
        sent = {event["type"] for event in found}
        report["sent"] |= sent
        if newer := (sent - known) | ({event["item"]["type"] for event in found if "item" in event} - items):
            report["newer"] |= newer
            continue
        for event in found:
            try:
                judge.validate_python(event)
            except ValidationError as error:
                report["wrong"].append(f"{str(error)[-600:]} {event}")
        if "error" not in sent and not report["wrong"]:
            report["read"] |= {event.type for event in client.responses.create(**ask, stream=True)}
    return {key: sorted(value) for key, value in report.items()}


def agents(url: str) -> dict[str, Any]:
    from agents import Agent, Runner, function_tool, set_default_openai_client, set_tracing_disabled

    set_tracing_disabled(True)
    set_default_openai_client(openai.AsyncOpenAI(base_url=url, api_key="sk-1", max_retries=0), use_for_tracing=False)

    @function_tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    agent = Agent(name="probe", instructions="Use the tool.", tools=[add], model="gpt-5.2-codex")
    return {"output": Runner.run_sync(agent, "What is 2 + 3?").final_output}


if __name__ == "__main__":
    if sys.argv[2] == "agents":
        print(json.dumps(agents(sys.argv[1])))
    else:
        print(json.dumps((events if "events" in sys.argv else plain)(sys.argv[1], int(sys.argv[2]))))
