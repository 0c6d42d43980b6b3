"""The payloads of a proxy that opens threads and starts turns (v2). Sources: editor.md, schema-tools.md, real-0.92.md.

No document describes a proxy that opens threads. The checks use the statements about thread/start and turn/start. If
thread/start and turn/start have members for the model, folder, policies or effort, the checks also use the statements about
these members in docs/contract/payloads.md.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin.base.checking import has_conversations, keeps_experimental
from codex_replay.plugin.proxy.fixture import Exchange, Proxy, SubjectFailure
from suites.proxy.answers import must_say
from suites.proxy.expected import (
    AS_SPECIFIED,
    EFFECTIVE,
    ENDLESS,
    ENDPOINTS,
    NOTE,
    SPEAKS_V2,
    SUM,
    TREE,
    WORKS,
    format_of,
    native,
    tool,
)
from suites.proxy.failures import with_optional
from suites.proxy.saying import must_be, must_be_one_of, must_be_same, must_have, only, short, with_env

pytestmark = [pytest.mark.proxy_profile(SPEAKS_V2), pytest.mark.model("Hi.")]

BOTH = pytest.mark.parametrize("endpoint", ENDPOINTS)
START, TURN = "thread/start", "turn/start"
#: What begins or continues a conversation, in either generation of the protocol.
CALLS = (
    START,
    TURN,
    "thread/resume",
    "thread/fork",
    "newConversation",
    "addConversationListener",
    "sendUserTurn",
    "sendUserMessage",
)
PICTURE = "data:image/png;base64,iVBORw0KGgo="


def opened(done: Exchange) -> Any:
    """Return the app-server's answer to thread/start."""
    asked = only(f"call of {START}", done.calls(START))["id"]
    return only("answer to it", results(done, asked))["thread"]["id"]


def results(done: Exchange, asked: Any) -> list[Any]:
    """Return the results with which the app-server answered the call `asked`."""
    return [
        frame.value["result"]
        for frame in done.frames
        if frame.sender == "server" and frame.value.get("id") == asked and "result" in frame.value
    ]


@BOTH
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.spec("threads-calls", "EDIT-04", "PAY-02")
def test_the_two_calls(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """For one request, the proxy opens one thread and starts one turn in it; it makes no call of v1."""
    sent = [call["method"] for call in proxy.post(endpoint, {"stream": stream}).calls(*CALLS)]
    must_be("The calls of one request", sent, [START, TURN])


@pytest.mark.proxy_profile(AS_SPECIFIED, WORKS, SPEAKS_V2)
@pytest.mark.spec("threads-handshake", "EDIT-04", "EDIT-05", "EDIT-06", "EDIT-07")
def test_the_handshake(proxy: Proxy) -> None:
    """The proxy sends each app-server `initialize` and, after the answer, `initialized`, before any other message."""
    proxy.chat()
    assert proxy.running is not None, "The proxy must still run after the answer."
    for child in sorted({frame.child for frame in proxy.running.wire.frames}):
        frames = [frame for frame in proxy.running.wire.frames if frame.child == child]
        first, *others = [frame for frame in frames if frame.sender == "client"]
        must_be("The first message to an app-server", first.value.get("method"), "initialize")
        info = first.value.get("params", {}).get("clientInfo", {})
        for name in ("name", "version"):
            assert isinstance(info.get(name), str), f"initialize.clientInfo.{name} must be a text, but clientInfo is {info!r}."
        assert others, "The proxy must send `initialized` after `initialize`, but no further message came."
        second = others[0]
        must_be("The second message to an app-server", second.value.get("method"), "initialized")
        must_be("The kind of `initialized`", second.kind, "notification")
        must_be("The params of `initialized`, null being none,", second.value.get("params"), None)
        replies = [f for f in frames[: frames.index(second)] if f.sender == "server" and f.value.get("id") == first.value["id"]]
        must_be("The number of replies to `initialize` before `initialized`", len(replies), 1)


#: What a client gets only if the app-server sends the notification.
NEEDED = {
    "turn/completed": "the end of the turn",
    "item/agentMessage/delta": "the text while the model writes",
    "thread/tokenUsage/updated": "the usage",
}


@BOTH
@pytest.mark.spec("threads-opt-out", "EDIT-15", "REAL-49", "REAL-98")
def test_the_notifications_that_it_opts_out_of(proxy: Proxy, endpoint: str) -> None:
    """The proxy does not opt out of a notification that its answers need."""
    found: SubjectFailure | None = None
    try:
        lacks = {"thread/tokenUsage/updated"} if proxy.post(endpoint).json.get("usage") is None else set()
    except SubjectFailure as failure:
        found, lacks = failure, {"turn/completed"}
    lacks |= {"item/agentMessage/delta"} if "stream" in proxy.able else set()
    assert proxy.running is not None, "The proxy must still run after the request."
    for frame in proxy.running.wire.frames:
        if frame.sender == "client" and frame.value.get("method") == "initialize":
            able = frame.value.get("params", {}).get("capabilities") or {}
            for name in sorted(lacks & {*(able.get("optOutNotificationMethods") or ())}):
                raise AssertionError(
                    f"`initialize` of the proxy opts out of {name} (optOutNotificationMethods), so the app-server does not send "
                    f"{NEEDED[name]}, and the client does not get it. Remove {name} from the list. {found or ''}"
                )
    if found is not None:
        raise found


def everything(proxy: Proxy, endpoint: str) -> dict[str, Any]:
    """Return a request with every setting that may become a member of a payload; with tools if the proxy supports tools."""
    effort = {"reasoning_effort": "low"} if endpoint == "chat" else {"reasoning": {"effort": "low", "summary": "concise"}}
    sampling = {"temperature": 0.5, "top_p": 0.9, "n": 1, "parallel_tool_calls": False, "tool_choice": "auto", "user": "u"}
    tools = {"tools": [tool(endpoint)]} if {"text-tools", "native-tools"} & {*proxy.able} else {}
    return {**tools, **format_of(endpoint), **effort, **sampling}


@BOTH
@pytest.mark.spec("threads-valid", "REAL-40", "SCHEMA-02")
def test_every_message_is_valid(proxy: Proxy, endpoint: str) -> None:
    """The schema bundle accepts every message of the proxy, including the handshake and the replies."""
    proxy.post(endpoint)
    proxy.post(endpoint, everything(proxy, endpoint), ok=False)
    must_be("The parts of the proxy's messages that the bundle does not accept", proxy.violations("valid"), [])


@BOTH
@pytest.mark.spec("threads-known", "REAL-45")
def test_every_member_is_known(proxy: Proxy, endpoint: str) -> None:
    """No message of the proxy has a member that the schema bundle does not name, because the server would silently ignore it."""
    proxy.post(endpoint)
    proxy.post(endpoint, everything(proxy, endpoint), ok=False)
    must_be("The members of the proxy's messages that the bundle does not name", proxy.violations("known"), [])


@BOTH
@pytest.mark.spec("threads-id", "EDIT-11", "EDIT-12")
def test_the_turn_is_in_the_thread(proxy: Proxy, endpoint: str) -> None:
    """turn/start has the id of the thread that was opened for this request."""
    done = proxy.post(endpoint)
    must_be(f"{TURN}.threadId", done.params(TURN)["threadId"], opened(done))


@BOTH
@pytest.mark.spec("threads-fresh", "PAY-02")
def test_each_request_has_a_thread_of_its_own(proxy: Proxy, endpoint: str) -> None:
    """The proxy opens a new thread for each request."""
    first, second = (proxy.post(endpoint).params("turn/start")["threadId"] for _ in range(2))
    assert first != second, f"Two requests share the thread {first!r}; each must open its own."


@BOTH
@pytest.mark.spec("threads-input", "REAL-43", "EDIT-13")
def test_the_input(proxy: Proxy, endpoint: str) -> None:
    """The input of turn/start is one text item with the members `type` and `text`; the text contains the prompt."""
    item = only(f"item of {TURN}.input", proxy.post(endpoint).params(TURN)["input"])
    must_be(f"The members of {TURN}.input[0], an empty text_elements left out,", sorted(with_text(item)), ["text", "type"])
    must_be(f"{TURN}.input[0].type", item["type"], "text")
    must_have(f"{TURN}.input[0].text", item["text"], proxy.prompt())


def with_text(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item without `text_elements` if the list is empty, which is the default."""
    return {name: value for name, value in item.items() if (name, value) != ("text_elements", [])}


@BOTH
@pytest.mark.spec("threads-image", "REAL-43", "HAND-39")
def test_an_image(proxy: Proxy, endpoint: str) -> None:
    """In turn/start, an image is a separate item with the members `type` and `url`, or `path` if the proxy saves it to a file."""
    text, image = ("text", "image_url") if endpoint == "chat" else ("input_text", "input_image")
    url: Any = {"url": PICTURE} if endpoint == "chat" else PICTURE
    messages = [{"role": "user", "content": [{"type": text, "text": proxy.prompt("See")}, {"type": image, "image_url": url}]}]
    done = proxy.post(endpoint, {"messages" if endpoint == "chat" else "input": messages})
    images = [item for item in done.params(TURN)["input"] if item.get("type") != "text"]
    if [(sorted(item), item["type"]) for item in images] == [(["path", "type"], "localImage")]:
        return  # image-reaches-model checks the file
    must_be(f"The items of {TURN}.input that are not text", images, [{"type": "image", "url": PICTURE}])


@BOTH
@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
@pytest.mark.spec("threads-sandbox", "REAL-44", "PAY-28")
def test_the_sandbox(proxy: Proxy, endpoint: str, mode: str) -> None:
    """The value of PROXY_SANDBOX_MODE is in `sandbox` of the thread or, in camelCase, in `sandboxPolicy` of the turn."""
    done = proxy.post(endpoint, env={"PROXY_SANDBOX_MODE": mode})
    policy, sandbox = done.params(TURN).get("sandboxPolicy"), done.params(START).get("sandbox")
    camel = {"read-only": "readOnly", "workspace-write": "workspaceWrite"}
    if policy is not None:
        must_be(f"With PROXY_SANDBOX_MODE={mode}, {TURN}.sandboxPolicy.type", policy.get("type"), camel[mode])
    if sandbox is not None or policy is None:
        must_be(f"With PROXY_SANDBOX_MODE={mode}, {START}.sandbox", sandbox, mode)


@BOTH
@pytest.mark.spec("threads-default-sandbox", "PAY-23", "REAL-44")
def test_the_sandbox_by_default(proxy: Proxy, endpoint: str) -> None:
    """Without PROXY_SANDBOX_MODE a turn may only read, because the prompts of clients determine the commands of the model."""
    done = proxy.post(endpoint)
    policy, sandbox = done.params(TURN).get("sandboxPolicy"), done.params(START).get("sandbox")
    kind = None if policy is None else policy.get("type")
    must_be_one_of(f"Without PROXY_SANDBOX_MODE, {TURN}.sandboxPolicy.type", kind, (None, "readOnly"))
    if kind is None:
        must_be_one_of(f"Without PROXY_SANDBOX_MODE, {START}.sandbox", sandbox, (None, "read-only"))


#: A variable or a member of the request, and the member of thread/start or turn/start that it decides.
MEANT: dict[str, tuple[dict[str, str], dict[str, Any], str, Any]] = {
    "model": ({}, {}, "model", EFFECTIVE),
    "cwd": ({"PROXY_CODEX_WORKDIR": "/tmp/elsewhere"}, {}, "cwd", "/tmp/elsewhere"),
    "approval": ({"PROXY_APPROVAL_POLICY": "on-request"}, {}, "approvalPolicy", "on-request"),
}


@BOTH
@pytest.mark.parametrize("name", MEANT)
@pytest.mark.spec("threads-settings", "PAY-08", "PAY-10", "PAY-27")
def test_the_settings(proxy: Proxy, endpoint: str, name: str) -> None:
    """The model, the folder and the approval policy are in turn/start or, if missing there, in thread/start."""
    env, body, member, wanted = MEANT[name]
    done = proxy.post(endpoint, body, env=env)
    of_turn = done.params(TURN).get(member)
    found = done.params(START).get(member) if of_turn is None else of_turn
    must_be(f"{with_env(env)}{member} of {TURN}, else of {START},", found, wanted)


@BOTH
@pytest.mark.parametrize("effort", ["low", "high"])
@pytest.mark.spec("threads-effort", "PAY-12")
def test_the_effort(proxy: Proxy, endpoint: str, effort: str) -> None:
    """turn/start has the effort of the client's request, or the proxy refuses the effort."""
    body = {"reasoning_effort": effort} if endpoint == "chat" else {"reasoning": {"effort": effort}}
    done, accepted = with_optional(proxy, lambda **more: proxy.post(endpoint, more), **body)
    if accepted:
        must_be(f"{TURN}.effort", done.params(TURN).get("effort"), effort)


@BOTH
@pytest.mark.spec("threads-schema", "REAL-45", "PAY-15")
def test_the_schema_of_the_answer(proxy: Proxy, endpoint: str) -> None:
    """The client's schema for the answer is in outputSchema of the turn, with the same order of keys, or the proxy refuses it."""
    done, accepted = with_optional(proxy, lambda **more: proxy.post(endpoint, more), **format_of(endpoint))
    if accepted:
        must_be_same(f"{TURN}.outputSchema", done.params(TURN).get("outputSchema"), SUM)
    must_be(f"{TURN}.outputSchema without a schema", proxy.post(endpoint).params(TURN).get("outputSchema"), None)


@BOTH
@pytest.mark.needs("native-tools")
@pytest.mark.spec("threads-tools", "SCHEMA-06", "SCHEMA-07", "REAL-47", "PAY-15")
def test_dynamic_tools(proxy: Proxy, endpoint: str) -> None:
    """Each function tool becomes a dynamic tool of the thread, in order, with its members and its unchanged schema."""
    tools = [tool(endpoint), tool(endpoint, "saveNote", NOTE, "Save it")]
    found = proxy.post(endpoint, {"tools": tools}).params(START).get("dynamicTools")
    wanted = [("getFileTree", "List files", TREE), ("saveNote", "Save it", NOTE)]
    assert isinstance(found, list), f"{START}.dynamicTools must be a list of two tools, but it is {found!r}."
    optional = {"type"} if keeps_experimental(proxy.version) else set()  # threads-valid checks it
    members = ["description", "inputSchema", "name"]
    must_be(f"The members of {START}.dynamicTools", [sorted({*each} - optional) for each in found], [members] * 2)
    must_be_same(
        f"{START}.dynamicTools",
        [[each[name] for name in ("name", "description", "inputSchema")] for each in found],
        [list(each) for each in wanted],
    )


@BOTH
@pytest.mark.spec("threads-no-tools", "SCHEMA-15", "HAND-28")
def test_tools_are_nowhere_else(proxy: Proxy, endpoint: str) -> None:
    """Only thread/start declares tools; if the client sends no tools, thread/start declares none."""
    turn = proxy.post(endpoint, {"tools": [tool(endpoint)]}).params(TURN)
    must_be(f"The members of {TURN} about tools", [name for name in turn if "tool" in name.lower()], [])
    must_be(
        f"{START}.dynamicTools without tools, null being none,", proxy.post(endpoint).params(START).get("dynamicTools") or [], []
    )


@BOTH
@pytest.mark.needs("native-tools")
@pytest.mark.model(native())
@pytest.mark.spec("threads-tool-reply", "SCHEMA-12", "SCHEMA-16")
def test_the_reply_to_a_tool_call(proxy: Proxy, endpoint: str) -> None:
    """If the app-server requests the output of a tool, the proxy replies with `output` and `success`, or interrupts the turn."""
    done = proxy.post(endpoint, {"tools": [tool(endpoint)]})
    try:
        frames = proxy.eventually(lambda frames: bool(tool_replies(frames)), 2.0, "A reply to item/tool/call, or turn/interrupt,")
    except SubjectFailure:
        if not done.calls("turn/interrupt"):
            raise
        frames = done.frames
    for reply in tool_replies(frames):
        output = {"contentItems": "list"} if keeps_experimental(proxy.version) else {"output": "str"}
        must_be("The members of the reply to item/tool/call", sorted(reply.get("result", {})), [*output, "success"])
        kinds = {name: type(value).__name__ for name, value in reply["result"].items()}
        must_be("The kinds of its members", kinds, {**output, "success": "bool"})


def tool_replies(frames: list[Any]) -> list[Any]:
    """Return the proxy's replies to requests for a tool's output."""
    asked = [frame.value["id"] for frame in frames if frame.sender == "server" and frame.value.get("method") == "item/tool/call"]
    return [f.value for f in frames if f.sender == "client" and "method" not in f.value and f.value.get("id") in asked]


@BOTH
@pytest.mark.model(turns=[ENDLESS])
@pytest.mark.spec("threads-interrupt", "EDIT-30", "REAL-73")
def test_an_interrupt(proxy: Proxy, endpoint: str) -> None:
    """If a client hangs up, the proxy interrupts its turn with the ids of the thread and the turn, and no other member.

    A proxy that ends its app-server needs no interrupt.
    """
    done = proxy.post(endpoint, {"stream": True}, stop_after="word word", ok=False)

    def sent(frames: list[Any]) -> bool:
        interrupts = any(f.sender == "client" and f.value.get("method") == "turn/interrupt" for f in frames)
        return interrupts or not any(frame.child_runs() for frame in frames)

    proxy.eventually(sent, what="turn/interrupt (or the end of the app-server) after the client hung up in mid-stream")
    if not done.calls("turn/interrupt"):
        return  # the app-server has ended, and its turn with it
    turn = only("answer to turn/start", results(done, only(f"call of {TURN}", done.calls(TURN))["id"]))["turn"]["id"]
    must_be("turn/interrupt", dict(done.params("turn/interrupt")), {"threadId": opened(done), "turnId": turn})


CWD, WHO = "/tmp", {"threadId": "{threadId}", "turnId": "{turnId}"}
OF_ITEM = {**WHO, "itemId": "call_asked", "startedAtMs": 1}
QUESTION = {"id": "q", "header": "Colour", "question": "Which colour?", "isOther": False, "isSecret": False, "options": None}
FORM = {"type": "object", "properties": {"colour": {"type": "string"}}}
#: A request of the app-server: its method, its params, and an answer that gives nothing away.
ASKED: dict[str, tuple[str, dict[str, Any], str]] = {
    "command": ("item/commandExecution/requestApproval", {**OF_ITEM, "command": "rm x", "cwd": CWD}, '{"decision": "decline"}'),
    "file-change": ("item/fileChange/requestApproval", {**OF_ITEM, "reason": None}, '{"decision": "decline"}'),
    "question": ("item/tool/requestUserInput", {**OF_ITEM, "isBlocking": True, "questions": [QUESTION]}, '{"answers": {}}'),
    "elicitation": (
        "mcpServer/elicitation/request",
        {**WHO, "serverName": "colours", "mode": "form", "message": "Which colour?", "requestedSchema": FORM},
        '{"action": "decline", "content": null}',
    ),
    "permissions": (
        "item/permissions/requestApproval",
        {**OF_ITEM, "cwd": CWD, "permissions": {"network": {"enabled": True}}},
        '{"permissions": {}}',
    ),
    "unknown": ("item/of/a/later/version", WHO, "an error with the code -32601"),
}
#: The requests after which a reply with an error lets the turn hang, in 0.92.0; not in 0.169.0.
NEED_A_RESULT = ("command", "file-change", "question")


@BOTH
@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.model(turns=[{"items": ["So be it."], "first_delay_ms": 500, "times": "always"}])
@pytest.mark.spec("threads-asked", "REAL-36", "REAL-52", "REAL-57", "REAL-60", "REAL-79")
def test_every_request_of_the_server_is_answered(proxy: Proxy, endpoint: str, kind: str) -> None:
    """The proxy answers each request of the app-server with the members of the method, or with an error, and allows nothing."""
    (method, params, answer), number = ASKED[kind], list(ASKED).index(kind)
    request = {"method": method, "id": number, "params": params}
    insert = {"after": '"method":"turn/started"', "lines": [json.dumps(request)]}
    done = proxy.post(endpoint, env={"CODEX_REPLAY_INSERT": json.dumps(insert)}, ok=False)

    def reply(frames: list[Any]) -> dict[str, Any] | None:
        sent = (f.value for f in frames if f.sender == "client" and f.kind in ("response", "error"))
        return next((value for value in sent if str(value.get("id")) == str(number)), None)

    def reacted(frames: list[Any]) -> bool:
        return reply(frames) is not None or bool(done.calls("turn/interrupt")) or not any(f.child_runs() for f in frames)

    zero = "" if number else " (the first request of an app-server has the id 0, which is an id, too)"
    why = f"The proxy's answer ({answer}) to the app-server's request {method}, id {number}{zero}, for which the turn waits,"
    got = reply(proxy.eventually(reacted, 3.0, why))
    if got is None:
        return  # the turn has ended
    must_be(f"The id in the proxy's reply to {method}", got["id"], number)
    if "error" in got and kind in NEED_A_RESULT and has_conversations(proxy.version):
        raise AssertionError(f"The proxy answered {method} with an error, after which the turn hangs: answer {answer}.")
    result: Any = got.get("result") if isinstance(got.get("result"), dict) else {}
    given = [name for name in ("decision", "action") if str(result.get(name)).startswith(("accept", "{'accept"))]
    if given or (kind == "permissions" and result.get("permissions")):
        raise AssertionError(f"The proxy allowed {method}, which no user has seen, with {short(result)}: answer {answer}.")
    if kind != "unknown" and (wrong := proxy.violations("valid") or proxy.violations("known")):
        raise AssertionError(f"The proxy answered {method} with {short(got)}. {' '.join(wrong)} Answer {answer}.")
    if done.status < 400:
        must_say(done, "So be it.")
