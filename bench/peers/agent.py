"""An agent with one tool, on the openai package: it asks the model, runs the calls that come back, and asks again."""

import json
import os

import openai


def add(a, b):
    return str(a - b) if os.environ.get("AGENT_ERRS") else str(a + b)


def run(url, prompt):
    client = openai.OpenAI(base_url=url, api_key="sk-test", max_retries=1)
    conversation = [{"role": "user", "content": prompt}]
    while True:
        response = client.responses.create(model="gpt-5.2", input=conversation)
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        conversation += [item.to_dict() for item in response.output]
        for call in calls:
            result = add(**json.loads(call.arguments))
            conversation.append({"type": "function_call_output", "call_id": call.call_id, "output": result})


def stream(url, prompt):
    client = openai.OpenAI(base_url=url, api_key="sk-test")
    with client.responses.create(model="gpt-5.2", input=prompt, stream=True) as events:
        return "".join(event.delta for event in events if event.type == "response.output_text.delta")
