"""MCP servers: their start-up, the results of their tools, and the requests about them.

Source: the bundle's McpToolCallStatus, McpStartupStatus and ListMcpServerStatusResponse; docs/contract/real-0.92.md, section 3
names their tools. The MCP server is a short program, which the real Codex starts.
"""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit
from urllib.request import urlopen

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import has_events, in_events, these, turn_id
from suites.app_server.expected import SOME_INT, all_of, text
from suites.app_server.turns import FREE, another_thread, asked, asked_upstream, ended, items_of, last_words, msgs, run, start

PROGRAM = """
import json, sys
TOOL = {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}}
RESULTS = {
    "tools/list": {"tools": [TOOL]},
    "resources/list": {"resources": [{"uri": "tiny://one", "name": "one"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": [{"uri": "tiny://one", "text": "1"}]},
}
def call(given):
    if "ask" in given:
        params = {"message": given["ask"], "requestedSchema": {"type": "object", "properties": {}}}
        print(json.dumps({"jsonrpc": "2.0", "id": 99, "method": "elicitation/create", "params": params}), flush=True)
        return {"content": [{"type": "text", "text": sys.stdin.readline()}]}
    if "a" not in given:
        return {"content": [{"type": "text", "text": "There is no a."}], "isError": True}
    return {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}
for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked["method"], asked.get("params", {})
    if method == "initialize":
        can = {"tools": {}, "resources": {}}
        about = {"name": "tiny", "version": "1"}
        result = {"protocolVersion": params["protocolVersion"], "capabilities": can, "serverInfo": about}
    else:
        result = call(params["arguments"]) if method == "tools/call" else RESULTS.get(method, {})
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
TINY = {"mcp_servers": {"tiny": {"command": "python3", "args": ["tiny.py"]}}}
#: The tools of a server have its name as their namespace, or as the beginning of their own.
NAMESPACES = {"0.0.0": False, "0.169.0": True}
#: Settings of a thread that calls the tools of a server without asking.
CALLS: dict[str, dict[str, Any]] = {"0.0.0": {}, "0.169.0": FREE}
#: The content of a result as text for the model.
TOLD = {"0.0.0": '[{{"text":"{words}","type":"text"}}]', "0.169.0": None}
BROKEN = {"mcp_servers": {"broken": {"command": "no-such-program"}}}


def with_program(root: Path) -> None:
    """Write the program of the MCP server to the working directory."""
    (root / "work" / "tiny.py").write_text(PROGRAM)


def ready(server: Server) -> str:
    """Start a thread and wait until each of its MCP servers has started or failed; return the thread's id."""
    server.initialize()
    thread = another_thread(server, **server.by_version(CALLS))
    if has_events(server):
        server.notification("codex/event/mcp_startup_complete")
    else:
        updates: list[str] = []
        while not {"ready", "failed"} & set(updates):
            updates.append(server.notification("mcpServer/startupStatus/updated")["status"])
    return thread


def call(arguments: dict[str, Any], name: str = "mcp__tiny__add") -> dict[str, Any]:
    """Return a script's item: the model calls the tool of an MCP server."""
    return {"type": "function_call", "name": name, "call_id": "call_1", "arguments": arguments}


def add(app_server: AppServer, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a script's item: the model calls the tool `add` of the MCP server, by the name that the Codex version uses."""
    if not app_server.by_version(NAMESPACES):
        return call(arguments)
    item = {"type": "function_call", "id": "fc_1", "namespace": "mcp__tiny", "name": "add", "call_id": "call_1"}
    item |= {"arguments": json.dumps(arguments), "status": "completed"}
    return {"type": "event", "event": {"type": "response.output_item.done", "output_index": 0, "item": item}}


def script(item: dict[str, Any], output: str) -> list[dict[str, Any]]:
    """Return a script: the model makes the given call, expects an output, and sends a message."""
    return [{"items": [item]}, {"items": [text("Done")], "expect": {"outputs": {"call_1": output}}}]


def test_start_up(app_server: AppServer) -> None:
    """Codex reports an MCP server first as starting, then as ready.

    The last notification lists the MCP servers that are ready.
    """
    server = app_server(config=TINY, prepare=with_program)
    ready(server)
    updates = [(msg["server"], msg["status"]) for msg in msgs(server, "mcp_startup_update")]
    assert updates == in_events(server, [("tiny", {"state": "starting"}), ("tiny", {"state": "ready"})])
    if not has_events(server):
        seen = [(params["name"], params["status"]) for params in all_of(server, "mcpServer/startupStatus/updated")]
        assert seen == [("tiny", "starting"), ("tiny", "ready")]
    assert msgs(server, "mcp_startup_complete") == in_events(server, [{"ready": ["tiny"], "failed": [], "cancelled": []}])


def test_start_up_fails(app_server: AppServer) -> None:
    """If the program of an MCP server does not exist, its start-up fails with the system's error; the thread still works."""
    server = app_server([{"items": [text("Hello")]}], config=BROKEN)
    thread = ready(server)
    why = "No such file or directory (os error 2)"
    report = f"MCP client for `broken` failed to start: MCP startup failed: {why}"
    updates = [msg["status"] for msg in msgs(server, "mcp_startup_update")]
    assert updates == in_events(server, [{"state": "starting"}, {"state": "failed", "error": report}])
    if not has_events(server):
        seen = [(params["status"], params["error"]) for params in all_of(server, "mcpServer/startupStatus/updated")]
        assert seen == [("starting", None), ("failed", report)]
    failed = [{"server": "broken", "error": why}]
    assert msgs(server, "mcp_startup_complete") == in_events(server, [{"ready": [], "failed": failed, "cancelled": []}])
    assert run(server, thread)["status"] == "completed"


def expected_output(app_server: AppServer, words: str) -> dict[str, Any]:
    """Return the output that the script expects: JSON, or an empty text for a version that adds a time to the output."""
    form = app_server.by_version(TOLD)
    return {} if form is None else {"outputs": {"call_1": form.format(words=words)}}


def judge_told(server: Server, words: str) -> None:
    """On a live server whose outputs begin with the duration of the call, check the output that the model gets."""
    if server.upstream is not None and server.by_version(TOLD) is None:
        output = asked_upstream(server)[-1][-1]["output"]
        head, _, rest = "\n".join(part["text"] for part in output).partition("\nOutput:\n")
        assert re.fullmatch(r"Wall time: \d+\.\d+ seconds", head)
        assert rest == words


def test_tool_call(app_server: AppServer) -> None:
    """For a call of an MCP tool, Codex sends a begin event, an end event and one mcpToolCall item; the model gets JSON."""
    turns = [
        {"items": [add(app_server, {"a": 1, "b": 2})]},
        {"items": [text("Done")], "expect": expected_output(app_server, "3")},
    ]
    server = app_server(turns, config=TINY, prepare=with_program)
    thread = ready(server)
    assert run(server, thread)["status"] == "completed"
    invocation = {"server": "tiny", "tool": "add", "arguments": {"a": 1, "b": 2}}
    content = [{"text": "3", "type": "text"}]
    if has_events(server):
        assert msgs(server, "mcp_tool_call_begin") == [{"call_id": "call_1", "invocation": invocation}]
        end = msgs(server, "mcp_tool_call_end")[0]
        assert sorted(end.pop("duration")) == ["nanos", "secs"]
        assert end == {"call_id": "call_1", "invocation": invocation, "result": {"Ok": {"content": content}}}
    item = {"type": "mcpToolCall", "id": "call_1", "server": "tiny", "tool": "add", "arguments": {"a": 1, "b": 2}, "error": None}
    done = {"status": "completed", "result": {"content": content, "structuredContent": None}, "durationMs": SOME_INT}
    started = {"status": "inProgress", "result": None, "durationMs": None}
    assert items_of(server, "mcpToolCall", "started") == these(server, [{**item, **started}])
    assert items_of(server, "mcpToolCall") == these(server, [{**item, **done}])
    assert last_words(server) == ["Done"]
    judge_told(server, "3")


def test_tool_call_fails(app_server: AppServer) -> None:
    """If the result of an MCP tool has isError, the item is `failed` and still has the result; the turn continues."""
    turns = [{"items": [add(app_server, {})]}, {"items": [text("Done")], "expect": expected_output(app_server, "There is no a.")}]
    server = app_server(turns, config=TINY, prepare=with_program)
    thread = ready(server)
    assert run(server, thread)["status"] == "completed"
    item = items_of(server, "mcpToolCall")[0]
    assert (item["status"], item["error"]) == ("failed", None)
    assert item["result"]["content"] == [{"text": "There is no a.", "type": "text"}]
    if has_events(server):
        assert msgs(server, "mcp_tool_call_end")[0]["result"]["Ok"]["isError"] is True
    assert last_words(server) == ["Done"]
    judge_told(server, "There is no a.")


#: Whether the call of a tool stays open that asks the user; otherwise the server accepts for the user, under the policy `never`.
OPEN_IF_ASKED = {"0.0.0": True, "0.169.0": False}


def test_elicitation(app_server: AppServer) -> None:
    """Codex reports an elicitation of an MCP server only as an event.

    Clients cannot reply to an elicitation, and the call stays open.

    Since 0.169.0 the server accepts an elicitation without a request to the client if no command needs an approval.
    """
    stays_open = app_server.by_version(OPEN_IF_ASKED)
    script = [{"items": [add(app_server, {"ask": "Sure?"})]}, {"items": [text("Done")]}]
    given: dict[str, Any] = {"config": TINY, "prepare": with_program}
    server = app_server(script[:1], ends=None, **given) if stays_open else app_server(script, **given)
    thread = ready(server)
    start(server, thread)
    if not stays_open:
        assert ended(server, thread)["status"] == "completed"
        assert asked(server) == []
        (done,) = items_of(server, "mcpToolCall")
        answer = json.loads(done["result"]["content"][0]["text"])
        assert (done["status"], answer["id"], answer["result"]["action"]) == ("completed", 99, "accept")
        return
    report = server.notification("codex/event/elicitation_request")
    assert report["msg"] == {"type": "elicitation_request", "server_name": "tiny", "id": 99, "message": "Sure?"}
    assert report["conversationId"] == thread
    server.request("account/read", {})
    assert asked(server) == []
    assert items_of(server, "mcpToolCall") == []
    assert server.request("turn/interrupt", {"threadId": thread, "turnId": turn_id(server)}) == {}
    assert ended(server, thread)["status"] == "interrupted"


def test_resource(app_server: AppServer) -> None:
    """If a built-in tool of Codex reads a resource of an MCP server, its item is a call of this MCP server."""
    contents = app_server.by_version(
        {"0.0.0": [{"text": "1", "uri": "tiny://one"}], "0.169.0": [{"uri": "tiny://one", "text": "1"}]}
    )
    report = json.dumps({"server": "tiny", "uri": "tiny://one", "contents": contents}, separators=(",", ":"))
    item = call({"server": "tiny", "uri": "tiny://one"}, "read_mcp_resource")
    server = app_server(script(item, report), config=TINY, prepare=with_program)
    thread = ready(server)
    assert run(server, thread)["status"] == "completed"
    assert items_of(server, "mcpToolCall")[0]["tool"] == "read_mcp_resource"
    assert items_of(server, "mcpToolCall")[0]["result"]["content"][0]["text"] == report
    assert last_words(server) == ["Done"]


def test_status(app_server: AppServer) -> None:
    """mcpServerStatus/list starts the configured servers and returns the tools and resources of each.

    Later versions do not start the MCP servers in a thread's folder, unless the request names a thread.
    """
    server = app_server(config=TINY, prepare=with_program)
    if has_events(server):
        server.initialize()
    params = {} if has_events(server) else {"threadId": ready(server)}
    tool = {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}}
    status = {
        "name": "tiny",
        "tools": {"add": tool},
        "resources": [{"name": "one", "uri": "tiny://one"}],
        "resourceTemplates": [],
        "authStatus": "unsupported",
    }
    assert server.request("mcpServerStatus/list", params) == these(server, {"data": [status], "nextCursor": None})


def test_status_of_none(app_server: AppServer) -> None:
    """Without MCP servers, mcpServerStatus/list returns an empty list."""
    server = app_server()
    server.initialize()
    assert server.request("mcpServerStatus/list", {}) == {"data": [], "nextCursor": None}


def test_reload(app_server: AppServer) -> None:
    """The server answers config/mcpServer/reload, which has no params, immediately."""
    server = app_server()
    server.initialize()
    assert server.request("config/mcpServer/reload") == {}


class Authority(http.server.BaseHTTPRequestHandler):
    """An MCP server over HTTP that requires a login, with an authority that registers every client and issues tokens."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """Answer GET requests with the metadata of the authority."""
        base = "http://" + self.headers["host"]
        places = {f"{what}_endpoint": f"{base}/{what}" for what in ("authorization", "token", "registration")}
        known = "/.well-known/oauth-authorization-server" in self.path
        if self.path == "/.well-known/oauth-authorization-server/mcp":  # later versions hold the issuer to the address they asked
            base += "/mcp"
        self._answer(200 if known else 404, {"issuer": base, "response_types_supported": ["code"], **places} if known else {})

    def do_POST(self) -> None:
        """Answer POST requests: register a client, or issue tokens."""
        asked = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/registration":
            self._answer(201, {"client_id": "client-1", "redirect_uris": json.loads(asked)["redirect_uris"]})
        elif self.path == "/token":
            self._answer(200, {"access_token": "token-1", "token_type": "Bearer", "expires_in": 3600})
        else:
            self._answer(401, {})


@contextmanager
def authority() -> Iterator[dict[str, Any]]:
    """Run an `Authority`; yield the configuration that names its server `remote`."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Authority)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/mcp"
    try:
        yield {"mcp_servers": {"remote": {"url": url}}, "mcp_oauth_credentials_store": "file"}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_oauth_login(app_server: AppServer) -> None:
    """mcpServer/oauth/login returns a URL for the browser; the callback from the browser completes the login."""
    with authority() as config:
        server = app_server(config=config)
        server.initialize()
        url = server.request("mcpServer/oauth/login", {"name": "remote"})["authorizationUrl"]
        query = dict(parse_qsl(urlsplit(url).query))
        assert (query["response_type"], query["client_id"], query["code_challenge_method"]) == ("code", "client-1", "S256")
        if server.live:  # as a browser does
            urlopen(f"{query['redirect_uri']}?{urlencode({'code': 'code-1', 'state': query['state']})}", timeout=10).close()
        assert server.notification("mcpServer/oauthLogin/completed") == these(server, {"name": "remote", "success": True})


def test_oauth_login_that_nobody_makes(app_server: AppServer) -> None:
    """If the browser's callback does not come in time, the login completes without success."""
    with authority() as config:
        server = app_server(config=config)
        server.initialize()
        server.request("mcpServer/oauth/login", {"name": "remote", "timeoutSecs": 1})
        completed = {"name": "remote", "success": False, "error": "timed out waiting for OAuth callback"}
        assert server.notification("mcpServer/oauthLogin/completed") == these(server, completed)


def test_oauth_login_refused(app_server: AppServer) -> None:
    """Codex refuses mcpServer/oauth/login for an MCP server that does not use HTTP, and for an unknown MCP server."""
    server = app_server(config=TINY, prepare=with_program)
    server.initialize()
    assert server.request_error("mcpServer/oauth/login", {"name": "tiny"}) == {
        "code": -32600,
        "message": "OAuth login is only supported for streamable HTTP servers.",
    }
    assert server.request_error("mcpServer/oauth/login", {"name": "huge"}) == {
        "code": -32600,
        "message": "No MCP server named 'huge' found.",
    }
