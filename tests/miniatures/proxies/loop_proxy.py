"""A small proxy of the profile works-on-0.92, written for the tests: threads, blocking reads, one app-server for each request.

    PROXY_DEFECTS=NAME,NAME... python loop_proxy.py

A request takes an idle app-server (or starts one), reads its stdout itself until the turn has ended, and gives it back. It has no
obsidian-xml and title-intercept. Each NAME plants one class of defects of real proxies; the tests hold the suite to
naming it. `refuses-options` and `refuses-calls` are choices that a proxy may make.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DEFECTS = set(filter(None, os.environ.get("PROXY_DEFECTS", "").split(",")))
KEY = os.environ.get("PROXY_API_KEY", "")
POLICY = os.environ.get("PROXY_APPROVAL_POLICY", "never")
CWD = os.environ.get("PROXY_CODEX_WORKDIR", "/tmp")
KEEPS_SYSTEM = os.environ.get("PROXY_IGNORE_CLIENT_SYSTEM_PROMPT") == "false"
MODELS = ("gpt-5.2", "gpt-5.2-codex")
IDLE, LATE = 60.0, 4.0


class Refused(Exception):
    """The answer is an error: its status, its message, the parameter that is wrong."""

    def __init__(self, status, message, param=None):
        super().__init__(message)
        self.status, self.param = status, param


class HungUp(Exception):
    """The client has gone."""


# -- the app-server --------------------------------------------------------------------------------------------------------


class AppServer:
    """One child, used by one request at a time."""

    def __init__(self):
        command = [os.environ["CODEX_BIN"], "app-server"]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.rest, self.lines, self.number = b"", [], 0
        params = {"clientInfo": {"name": "loop-proxy", "version": "1"}}
        if "unknown-members" in DEFECTS:
            params["capabilities"] = {"experimentalApi": True}
        self.ask("initialize", params)
        self.write({"method": "initialized"})

    def write(self, frame):
        try:
            line = json.dumps({"jsonrpc": "2.0", **frame}, ensure_ascii=False)
            self.child.stdin.write(line.encode(errors="replace") + b"\n")  # Codex drops a line with half a surrogate pair
        except OSError:
            raise Refused(502, "The app-server has ended.") from None

    def send(self, method, params):
        self.number += 1
        self.write({"id": self.number, "method": method, "params": params})
        return self.number

    def ask(self, method, params):
        """Ask and wait for the result; what comes before it is kept for later."""
        number, kept = self.send(method, params), []
        while True:
            frame = self.read(time.monotonic() + 15)
            if "method" in frame or frame.get("id") != number:
                kept.append(frame)
                continue
            self.lines = kept + self.lines
            if "error" in frame:
                raise Refused(502, f"The app-server refused: {frame['error']['message']}")
            return frame["result"]

    def read(self, deadline, client=None):
        """The next frame. Raises `Refused` at its end or after the deadline, `HungUp` when the client has gone."""
        while not self.lines:
            watched = [self.child.stdout, *([client] if client else [])]
            ready, _, _ = select.select(watched, [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise Refused(504, "The app-server has been silent for too long.")
            if client in ready and not peek(client):
                raise HungUp
            if self.child.stdout in ready:
                data = os.read(self.child.stdout.fileno(), 1 << 16)
                if not data:
                    self.end()
                    raise Refused(502, "The app-server ended in mid-turn.")
                *whole, self.rest = (self.rest + data).split(b"\n")
                if "line-limit" in DEFECTS and any(len(line) > 1 << 16 for line in whole):
                    time.sleep(IDLE)
                self.lines += [json.loads(line) for line in whole]
        return self.lines.pop(0)

    def end(self):
        self.child.kill()
        self.child.wait()


def peek(client):
    """Whether the client is still there; it sends nothing before its answer."""
    try:
        return bool(client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return True
    except OSError:
        return False


IDLE_SERVERS, LOCK = [], threading.Lock()


def take():
    with LOCK:
        while IDLE_SERVERS:
            server = IDLE_SERVERS.pop()
            if server.child.poll() is None:
                return server
    return AppServer()


def give_back(server):
    with LOCK:
        IDLE_SERVERS.append(server)


# -- a turn ----------------------------------------------------------------------------------------------------------------


def turn(asked, client):
    """Yield ("text", item, text), ("call", item) and at last ("end", usage). Raises `Refused`, `HungUp`."""
    server = take()
    fit = False
    try:
        thread = server.ask("thread/start", asked["opening"])["thread"]["id"]
        if "unknown-call" in DEFECTS:
            server.ask("thread/inject", {"threadId": thread})
        if "two-calls" in DEFECTS:
            server.send("sendUserMessage", {"conversationId": thread, "items": asked["v1"]})
        server.send("turn/start", {"threadId": thread, **asked["turn"]})
        try:
            yield from follow(server, thread, asked, client)
            fit = True
        except (HungUp, GeneratorExit):
            if "no-interrupt" in DEFECTS:
                fit = True
            else:
                fit = interrupt(server, thread)
            raise
        except Refused:
            fit = server.child.poll() is None
            raise
    finally:
        if fit:
            give_back(server)
        else:
            server.end()


CLOSES = {"<tool_call>": "</tool_call>", "<use_tool>": "</use_tool>"}


class Blocks:
    """Finds calls in the text of one message: `feed` and `close` yield ("text", item, text); `calls` grows."""

    def __init__(self, item, calls):
        self.item, self.calls, self.rest = item, calls, ""

    def say(self, size):
        text, self.rest = self.rest[:size], self.rest[size:]
        if text:
            yield "text", self.item, text

    def feed(self, text):
        self.rest += text
        while True:
            found = sorted((self.rest.find(tag), tag) for tag in CLOSES if tag in self.rest)
            if not found:
                held = next(n for n in range(10, -1, -1) if n == 0 or any(t.startswith(self.rest[-n:]) for t in CLOSES))
                yield from self.say(len(self.rest) - min(held, len(self.rest)))
                return
            at, tag = found[0]
            yield from self.say(at)
            end, call = self.rest.find(CLOSES[tag]), None
            while end >= 0 and not (call := self.read(tag, self.rest[len(tag) : end])):
                end = self.rest.find(CLOSES[tag], end + 1)
            if not call:
                return
            self.calls.append(call)
            self.rest = self.rest[end + len(CLOSES[tag]) :]

    def read(self, tag, content):
        if tag == "<use_tool>":
            found = dict(re.findall(r"<([\w.-]+)>(.*?)</\1>", content, re.S))
            name, given = found.pop("name", None), found
        else:
            try:
                found = json.loads(content)
                name, given = found["name"], found.get("arguments") or {}
            except (ValueError, KeyError, TypeError, AttributeError):
                return None
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return name and {"call_id": f"call_{uuid.uuid4()}", "name": name, "arguments": text}

    def close(self):
        tag = next((tag for tag in CLOSES if self.rest.startswith(tag)), None)
        if tag is None or (tag == "<use_tool>" and "partial-block" in DEFECTS):
            yield from self.say(len(self.rest))


def follow(server, thread, asked, client):
    usage, said, before, calls, blocks = None, {}, "", [], {}

    def told(item, text):
        if not asked["names"]:
            return [("text", item, text)]
        return blocks.setdefault(item, Blocks(item, calls)).feed(text)

    while True:
        try:
            frame = server.read(time.monotonic() + IDLE, client)
        except Refused as error:
            if error.status == 502 and "half-answer" in DEFECTS:
                yield "end", usage
                return
            raise
        method, params = frame.get("method"), frame.get("params") or {}
        if method is None:
            if "error" in frame:
                raise Refused(502, f"The app-server refused: {frame['error']['message']}")
            continue
        if "id" in frame:
            if method == "item/tool/call":
                server.write({"id": frame["id"], "result": {"output": "The client runs this tool.", "success": False}})
            elif "no-approvals" not in DEFECTS:
                server.write({"id": frame["id"], "result": {"decision": "decline"}})
            continue
        if params.get("threadId") != thread and "foreign-thread" not in DEFECTS:
            continue
        if method == "item/agentMessage/delta":
            text = params["delta"]
            if "repeated-deltas" in DEFECTS and before and text.startswith(before):
                text = text[len(before) :]
            before = params["delta"]
            said[params["itemId"]] = said.get(params["itemId"], "") + params["delta"]
            yield from told(params["itemId"], text)
        elif method == "item/completed" and params["item"]["type"] == "agentMessage":
            rest = params["item"]["text"][len(said.get(params["item"]["id"], "")) :]
            if rest and "repeated-deltas" not in DEFECTS:
                yield from told(params["item"]["id"], rest)
            if params["item"]["id"] in blocks:
                yield from blocks[params["item"]["id"]].close()
            if "first-message" in DEFECTS:
                yield "end", usage
                return
        elif method == "rawResponseItem/completed" and params["item"]["type"] == "function_call":
            if params["item"]["name"] in asked["names"]:
                calls.append(params["item"])
        elif method == "thread/tokenUsage/updated":
            usage = params["tokenUsage"].get("usage" if "usage-field" in DEFECTS else "total")
            if calls:
                for call in calls[:1] if asked["single"] else calls:
                    yield "call", call
                if not interrupt(server, thread):
                    server.end()
                yield "end", usage
                return
        elif method == "error" and not params.get("willRetry"):
            raise failed(params["error"])
        elif method == "turn/completed":
            if params["turn"]["status"] == "failed":
                raise failed(params["turn"]["error"])
            yield "end", usage
            return


def interrupt(server, thread):
    """End the turn; whether the app-server is fit for another one."""
    try:
        server.send("turn/interrupt", {"threadId": thread, "turnId": "0"})
        deadline = time.monotonic() + 3
        while True:
            frame = server.read(deadline)
            if frame.get("method") == "item/tool/call":
                server.write({"id": frame["id"], "result": {"output": "The client runs this tool.", "success": False}})
            elif frame.get("method") == "turn/completed" and frame["params"]["threadId"] == thread:
                return True
    except Refused:
        return False


def failed(error):
    message, info = error.get("message") or "The turn failed.", error.get("codexErrorInfo")
    if "late-errors" in DEFECTS and "401" not in message:
        time.sleep(LATE)
        return Refused(504, "The app-server has been silent for too long.")
    if info == "contextWindowExceeded":
        return Refused(400, message)
    return Refused(429 if info == "usageLimitExceeded" or "429" in message else 502, message)


# -- the request -----------------------------------------------------------------------------------------------------------


def plain(content):
    return "\n".join(part.get("text", "") for part in content) if isinstance(content, list) else content or ""


def understand(body, chat):
    if chat and body.get("n", 1) not in (None, 1):
        raise Refused(400, "n can only be 1.", "n")
    if body.get("previous_response_id"):
        raise Refused(400, "previous_response_id is not supported.", "previous_response_id")
    for name in ("stream_options", "response_format", "text", "reasoning_effort", "reasoning", "tool_choice"):
        if body.get(name) and {"refuses-options", "refuses-namelessly"} & DEFECTS:
            raise Refused(400, "No." if "refuses-namelessly" in DEFECTS else f"{name} is not supported.")
    given = body.get("messages" if chat else "input")
    if given is None:
        raise Refused(400, "There is no prompt.")
    texts, system = [], []
    lost = "lost-input" in DEFECTS and not chat
    for each in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        kind, role = each.get("type"), each.get("role")
        if "refuses-calls" in DEFECTS and (kind == "function_call" or role == "tool"):
            raise Refused(400, f"An item of type {kind or role} is not supported.")
        if kind in ("function_call", "function_call_output"):
            if not lost:
                said = f"{each.get('name')} {each.get('arguments')}" if kind == "function_call" else plain(each["output"])
                texts.append({"type": "text", "text": f"({kind} {each['call_id']}) {said}"})
                shown = each.get("output") if isinstance(each.get("output"), list) else []
                texts += [{"type": "image", "url": part["image_url"]} for part in shown if "image_url" in part]
        elif role in ("system", "developer"):
            system.append(plain(each["content"]))
        else:
            about = f" {each['tool_call_id']}" if role == "tool" else ""
            content = each.get("content")
            for part in content if isinstance(content, list) else [{"text": content or ""}]:
                if "image_url" not in part:
                    texts.append({"type": "text", "text": f"({role}{about}) {part['text']}"})
                elif not lost:
                    url = part["image_url"]
                    texts.append({"type": "image", "url": url["url"] if isinstance(url, dict) else url})
            for call in each.get("tool_calls") or []:
                said = f"{call['function']['name']} {call['function']['arguments']}"
                texts.append({"type": "text", "text": f"(call {call['id']}) {said}"})
    developer = ([] if chat and not KEEPS_SYSTEM else system) + ([body["instructions"]] if body.get("instructions") else [])
    declared = [] if body.get("tool_choice") == "none" else body.get("tools") or []
    choice = body.get("tool_choice") or "auto"
    if declared and choice != "auto":  # Codex always sends the tool choice `auto` to the model
        developer.append(f"Tool choice: {json.dumps(choice)}.")
    tools = [tool.get("function", tool) for tool in declared if tool.get("type") == "function"]
    opening = {"model": body.get("model") or MODELS[0], "cwd": CWD, "approvalPolicy": POLICY, "sandbox": "read-only"}
    opening |= {"ephemeral": True, "experimentalRawEvents": True, "developerInstructions": "\n\n".join(developer) or None}
    if tools:
        opening["dynamicTools"] = [
            {"name": t["name"], "description": t.get("description") or "", "inputSchema": t.get("parameters") or {}}
            for t in tools
        ]
    call = {"input": texts}
    shape = (body.get("response_format") if chat else (body.get("text") or {}).get("format")) or {}
    if shape.get("type") == "json_object":
        opening["developerInstructions"] = "\n\n".join([*developer, "Answer with one JSON object."])
    wanted = (shape.get("json_schema") if chat else shape) or {}
    if wanted.get("schema") and "no-schema" not in DEFECTS:
        call["outputSchema"] = wanted["schema"]
    if effort := body.get("reasoning_effort") if chat else (body.get("reasoning") or {}).get("effort"):
        call["effort"] = effort
    if "unknown-members" in DEFECTS:
        call["stream"] = bool(body.get("stream"))
    v1 = [{"type": "text", "data": {"text": item["text"]}} for item in texts if item["type"] == "text"]
    single = body.get("parallel_tool_calls") is False
    return {"opening": opening, "turn": call, "v1": v1, "single": single, "names": {tool["name"] for tool in tools}}


# -- the answers -----------------------------------------------------------------------------------------------------------


def tokens(usage, *names):
    usage = usage or {}
    return dict(zip(names, (usage.get(key, 0) for key in ("inputTokens", "outputTokens", "totalTokens")), strict=True))


class Chat:
    """The chunks of a chat and, at its end, the whole."""

    def __init__(self, body):
        self.head = {"id": f"chatcmpl-{uuid.uuid4()}", "created": int(time.time()), "model": body.get("model")}
        self.asked = (body.get("stream_options") or {}).get("include_usage")
        self.said, self.calls, self.usage = "", [], {}

    def chunk(self, delta, reason=None):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return f"data: {json.dumps({**self.head, 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"

    def begin(self):
        return self.chunk({"role": "assistant", "content": ""})

    def text(self, item, text):
        self.said += text
        return self.chunk({"content": text})

    def call(self, item):
        function = {"name": item["name"], "arguments": item["arguments"]}
        self.calls.append({"id": item["call_id"], "type": "function", "function": function})
        return self.chunk({"tool_calls": [{"index": len(self.calls) - 1, **self.calls[-1]}]})

    def end(self, usage):
        self.usage = tokens(usage, "prompt_tokens", "completion_tokens", "total_tokens")
        told = self.chunk({}, "tool_calls" if self.calls else "stop")
        if self.asked:
            last = {**self.head, "object": "chat.completion.chunk", "choices": [], "usage": self.usage}
            told += f"data: {json.dumps(last)}\n\n"
        return told + "data: [DONE]\n\n"

    def fail(self, error):
        return f"data: {json.dumps({'error': {'message': str(error), 'type': 'server_error'}})}\n\n"

    def whole(self):
        message = {"role": "assistant", "content": self.said, **({"tool_calls": self.calls} if self.calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if self.calls else "stop"}
        return {**self.head, "object": "chat.completion", "choices": [choice], "usage": self.usage}


class Response:
    """The events of a response and, at its end, the whole."""

    def __init__(self, body):
        self.head = {"id": f"resp_{uuid.uuid4()}", "object": "response", "created_at": int(time.time()), "error": None}
        self.head["model"] = body.get("model")
        self.output, self.number, self.open = [], 0, None

    def event(self, kind, **fields):
        self.number += 1
        return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': self.number - 1, **fields})}\n\n"

    def item(self, kind, **fields):
        return self.event(f"response.{kind}", output_index=len(self.output) - 1, item_id=self.output[-1]["id"], **fields)

    def begin(self):
        return self.event("response.created", response={**self.head, "status": "in_progress", "output": []})

    def text(self, item, text):
        told = ""
        if self.open != item:
            told = self.close()
            self.open = item
            made = {"type": "message", "id": f"msg_{uuid.uuid4()}", "role": "assistant", "status": "in_progress", "content": []}
            self.output.append(made)
            told += self.item("output_item.added", item=made)
            made["content"] = [{"type": "output_text", "text": "", "annotations": []}]
            told += self.item("content_part.added", content_index=0, part=made["content"][0])
        self.output[-1]["content"][0]["text"] += text
        return told + self.item("output_text.delta", content_index=0, delta=text)

    def close(self):
        if self.open is None:
            return ""
        self.open, made = None, self.output[-1]
        made["status"] = "completed"
        told = self.item("output_text.done", content_index=0, text=made["content"][0]["text"])
        told += self.item("content_part.done", content_index=0, part=made["content"][0])
        return told + self.item("output_item.done", item=made)

    def call(self, item):
        told = self.close()
        made = {"type": "function_call", "id": f"fc_{uuid.uuid4()}", "call_id": item["call_id"], "name": item["name"]}
        self.output.append(made)
        told += self.item("output_item.added", item={**made, "arguments": "", "status": "in_progress"})
        told += self.item("function_call_arguments.delta", delta=item["arguments"])
        told += self.item("function_call_arguments.done", arguments=item["arguments"])
        made |= {"arguments": item["arguments"], "status": "completed"}
        return told + self.item("output_item.done", item=made)

    def end(self, usage):
        told = self.close()
        spent = tokens(usage, "input_tokens", "output_tokens", "total_tokens")
        self.final = {**self.head, "status": "completed", "output": self.output, "usage": spent}
        return told + self.event("response.completed", response=self.final)

    def fail(self, error):
        told = {"code": "server_error", "message": str(error)}
        return self.event("response.failed", response={**self.head, "status": "failed", "output": self.output, "error": told})

    def whole(self):
        return self.final


# -- HTTP --------------------------------------------------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        """Say nothing."""

    def head(self, status, kind, **more):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("x-request-id", str(uuid.uuid4()))
        if "origin" in self.headers:
            self.send_header("access-control-allow-origin", "*")
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def give(self, status, value):
        data = json.dumps(value).encode()
        self.head(status, "application/json", content_length=len(data))
        self.wfile.write(data)

    def refuse(self, error):
        kind = "invalid_request_error" if error.status < 500 else "server_error"
        self.give(error.status, {"error": {"message": str(error), "type": kind, "param": error.param, "code": None}})

    def do_OPTIONS(self):
        allowed = {"access_control_allow_methods": "GET, POST", "access_control_allow_headers": "authorization, content-type"}
        self.head(200, "text/plain", content_length=0, **allowed)

    def do_GET(self):
        self.guarded(self.get)

    def do_POST(self):
        self.guarded(self.post)

    def guarded(self, work):
        data = self.body()
        self.path = self.path.partition("?")[0]
        try:
            scheme, _, key = self.headers.get("authorization", "").partition(" ")
            if self.path != "/healthz" and (scheme.lower() != "bearer" or key != KEY):
                raise Refused(401, "Give the right bearer.")
            work(data)
        except Refused as error:
            self.refuse(error)
        except (HungUp, OSError):
            self.close_connection = True

    def body(self):
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        data = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def get(self, _):
        if self.path == "/healthz":
            self.give(200, {"status": "ok"})
        elif self.path == "/v1/models":
            self.give(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]})
        else:
            raise Refused(404, "There is nothing here.")

    def post(self, data):
        chat = self.path == "/v1/chat/completions"
        if not chat and self.path != "/v1/responses":
            raise Refused(404, "There is nothing here.")
        try:
            body = json.loads(data.decode("utf-8"))
        except ValueError:
            raise Refused(400, "The body is not JSON.") from None
        if not isinstance(body, dict):
            raise Refused(400, "The body is not an object.")
        shape = (Chat if chat else Response)(body)
        self.answer(shape, turn(understand(body, chat), self.connection), bool(body.get("stream")))

    def answer(self, shape, events, streamed):
        begun = False
        try:
            for kind, *values in events:
                told = "" if begun else shape.begin()
                told += getattr(shape, kind)(*values)
                if not begun:
                    begun = True
                    if streamed:
                        self.head(200, "text/event-stream", transfer_encoding="chunked")
                if streamed:
                    self.chunk(told)
        except Refused as error:
            if not (begun and streamed):
                raise
            self.chunk(shape.fail(error))
        finally:
            events.close()
        if streamed:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.give(200, shape.whole())

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """A client that hung up is none of our errors."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def main():
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()


if __name__ == "__main__":
    main()
