"""What the tests of the fixtures share: a client of the app-server and of the backend, and the run of a project."""

from __future__ import annotations

import textwrap

import pytest

#: A client that an outside project may have: one prompt, one answer; it knows nothing of codex-replay.
CLIENT = '''
import json, subprocess, urllib.request

class Client:
    """Asks a codex app-server."""
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.call(1, "initialize", {"clientInfo": {"name": "outside", "version": "1"}})
        self.send({"method": "initialized"})
        self.thread = self.call(2, "thread/start", {})["thread"]["id"]
    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\\n")
        self.process.stdin.flush()
    def read(self):
        return json.loads(self.process.stdout.readline())
    def call(self, number, method, params):
        self.send({"id": number, "method": method, "params": params})
        while (message := self.read()).get("id") != number or "method" in message:
            pass
        return message["result"]
    def ask(self, prompt):
        text = ""
        params = {"threadId": self.thread, "input": [{"type": "text", "text": prompt}]}
        self.send({"id": 3, "method": "turn/start", "params": params})
        while (message := self.read()).get("method") != "turn/completed":
            if message.get("method") == "item/agentMessage/delta":
                text += message["params"]["delta"]
            if message.get("method", "").endswith("requestApproval"):
                self.send({"id": message["id"], "result": {"decision": "accept"}})
        return text
    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()

def ask_backend(url, prompt):
    body = json.dumps({"model": "m", "input": prompt, "stream": True}).encode()
    request = urllib.request.Request(url + "/responses", body, {"content-type": "application/json", "authorization": "Bearer x"})
    with urllib.request.urlopen(request) as response:
        events = [json.loads(line[6:]) for line in response.read().decode().splitlines() if line.startswith("data: {")]
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
'''


def run(project: pytest.Pytester, test: str, *options: str) -> pytest.RunResult:
    project.makepyfile(test_outside="from client import Client, ask_backend\n" + textwrap.dedent(test))
    return project.runpytest_subprocess("-q", *options)
