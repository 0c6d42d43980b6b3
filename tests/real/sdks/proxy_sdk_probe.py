"""Drive the OpenAI SDK against the proxy, as strictly as it can; runs in an environment of its own and prints JSON.

python proxy_sdk_probe.py URL PLAIN CALLS FAILING      each of the three a prompt
"""

from __future__ import annotations

import json
import sys
from typing import Any

import openai

FUNCTION: dict[str, Any] = {
    "name": "add",
    "description": "Adds.",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
}


def main(url: str, plain: str, calls: str, failing: str) -> dict[str, Any]:
    client = openai.OpenAI(base_url=url, api_key="key", max_retries=0, _strict_response_validation=True)
    nested: Any = [{"type": "function", "function": FUNCTION}]
    flat: Any = [{"type": "function", "strict": False, **FUNCTION}]

    def user(text: str) -> Any:
        return [{"role": "user", "content": text}]

    report: dict[str, Any] = {"models": [model.id for model in client.models.list()]}
    whole = client.chat.completions.create(model="gpt-5.2", messages=user(plain))
    chunks = client.chat.completions.create(model="gpt-5.2", messages=user(plain), stream=True)
    report["chat"] = [whole.choices[0].message.content, "".join(c.choices[0].delta.content or "" for c in chunks)]
    called = client.chat.completions.create(model="gpt-5.2", messages=user(calls), tools=nested).choices[0]
    report["chat calls"] = [(call.function.name, call.function.arguments) for call in called.message.tool_calls or []]
    with client.chat.completions.stream(model="gpt-5.2", messages=user(calls), tools=nested) as helped:
        final = helped.get_final_completion().choices[0]
    report["chat calls streamed"] = [(call.function.name, call.function.arguments) for call in final.message.tool_calls or []]
    report["responses"] = [client.responses.create(model="gpt-5.2", input=plain).output_text]
    with client.responses.stream(model="gpt-5.2", input=plain) as stream:
        report["responses"].append(stream.get_final_response().output_text)
    with client.responses.stream(model="gpt-5.2", input=calls, tools=flat) as stream:
        output = stream.get_final_response().output
    report["responses calls"] = [(item.name, item.arguments) for item in output if item.type == "function_call"]
    for name, ask in (("chat error", client.chat.completions.create), ("responses error", client.responses.create)):
        given: Any = {"messages": user(failing)} if name == "chat error" else {"input": failing}
        try:
            ask(model="gpt-5.2", **given)
        except openai.APIStatusError as error:
            report[name] = [type(error).__name__, error.code]
    return report


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
