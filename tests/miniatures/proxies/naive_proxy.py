"""The first version of a user's proxy: `POST /v1/chat/completions` works, and nothing else was thought of.

python naive_proxy.py [no-length]

It has no do_GET, so Python answers 501 with an HTML page. Another body than a chat ends in a traceback. With `no-length`, an
answer has no Content-Length, and the connection stays open.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Codex:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [os.environ["CODEX_BIN"], "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.call("initialize", {"clientInfo": {"name": "naive", "version": "1"}})
        self.send({"method": "initialized"})

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        return message

    def call(self, method: str, params: dict[str, Any]) -> Any:
        self.send({"id": method, "method": method, "params": params})
        while (message := self.read()).get("id") != method:
            pass
        return message["result"]

    def answer(self, prompt: str) -> str:
        thread = self.call("thread/start", {})["thread"]["id"]
        self.call("turn/start", {"threadId": thread, "input": [{"type": "text", "text": prompt, "text_elements": []}]})
        text = ""
        while (message := self.read()).get("method") != "turn/completed":
            if message.get("method") == "item/agentMessage/delta":
                text += message["params"]["delta"]
        self.process.kill()
        return text


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = Codex().answer(body["messages"][-1]["content"])
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        data = json.dumps({"id": "chat-1", "object": "chat.completion", "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if "no-length" not in sys.argv:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
