"""An agent with one tool: it asks the model, runs the calls that come back, and asks again until there is a text."""

import json
import urllib.request


def add(a, b):
    return str(a + b)


def run(url, prompt):
    conversation = [{"role": "user", "content": prompt}]
    while True:
        body = json.dumps({"model": "gpt-5.2", "input": conversation}).encode()
        request = urllib.request.Request(url + "/v1/responses", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as response:
            output = json.load(response)["output"]
        calls = [item for item in output if item["type"] == "function_call"]
        if not calls:
            return output[-1]["content"][0]["text"]
        conversation += output
        for call in calls:
            result = add(**json.loads(call["arguments"]))
            conversation.append({"type": "function_call_output", "call_id": call["call_id"], "output": result})
