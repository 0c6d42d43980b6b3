"""What a proxy of threads and turns may get wrong in its payloads (speaks-v2)."""

from __future__ import annotations

from typing import Any

from codex_replay.reference.proxy.asking import payloads
from codex_replay.reference.proxy.exchange import Exchange
from codex_replay.reference.proxy.wire.app_server import ANSWERS, AppServer, Message
from tests.strength.proxy_variants.patching import PATCHES, Params, after, drop, in_call, in_params, put, variant


def in_method(method: str, change: Any) -> None:
    """Change the params of what is written to the app-server as `method`: `change(params)` alters them in place."""

    def changed(call: Params) -> Params:
        if call.get("method") == method:
            call["params"] = dict(call["params"])
            change(call["params"])
        return call

    in_call(changed)


def before_opening(method: str) -> None:
    """Send one more call that opens a conversation before each thread/start."""
    old = AppServer.request

    async def request(self: AppServer, name: str, params: Any, then: Any = None) -> Any:
        if name == "thread/start":
            await old(self, method, {"cwd": params["cwd"]})
        return await old(self, name, params, then)

    AppServer.request = request


@variant
def thread_twice() -> None:
    before_opening("thread/start")


@variant
def a_conversation_beside_the_thread() -> None:
    before_opening("newConversation")


@variant
def initialized_before_the_reply() -> None:
    old = AppServer.ask

    async def ask(self: AppServer, method: str, params: Any, then: Any = None) -> Any:
        asked = await old(self, method, params, then)
        if method == "initialize":
            await AppServer._send(self, {"jsonrpc": "2.0", "method": "initialized"})
        return asked

    async def nothing(self: AppServer, method: str) -> None:
        pass

    AppServer.ask, AppServer.notify = ask, nothing


@variant
def no_initialized() -> None:
    async def nothing(self: AppServer, method: str) -> None:
        pass

    AppServer.notify = nothing


PATCHES["no-initialized-that-works"] = PATCHES["no-initialized-as-specified"] = PATCHES["no-initialized"]


@variant
def client_without_a_version() -> None:
    in_method("initialize", lambda params: params.update(clientInfo={"name": "proxy", "title": "proxy"}))


@variant
def approval_policy_in_camel_case() -> None:
    camel = {"on-request": "onRequest", "on-failure": "onFailure"}
    in_params("thread/start", lambda params, *_: params.update(approvalPolicy=camel.get(params["approvalPolicy"], "Never")))


@variant
def tool_reply_without_success() -> None:
    old = AppServer.reply

    async def reply(self: AppServer, number: Any, result: Any) -> None:
        await old(self, number, {name: value for name, value in result.items() if name != "success"})

    AppServer.reply = reply


@variant
def members_of_v1_in_the_thread() -> None:
    put("thread/start", compactPrompt=None, includeApplyPatchTool=False)


@variant
def both_spellings_in_the_turn() -> None:
    in_params("turn/start", lambda params, *_: params.update(output_schema=params.get("outputSchema")))


@variant
def turn_in_another_thread() -> None:
    threads: list[str] = []

    def change(params: Params) -> None:
        threads.append(params["threadId"])
        params["threadId"] = threads[0]

    in_method("turn/start", change)


@variant
def one_thread_for_all() -> None:
    old, first = AppServer.request, list[Any]()

    async def request(self: AppServer, method: str, params: Any, then: Any = None) -> Any:
        if method != "thread/start" or not first:
            result = await old(self, method, params, then)
            if method == "thread/start":
                first.append(result)
            return result
        then(first[0])
        return first[0]

    AppServer.request = request


def in_items(change: Any) -> None:
    """Replace each item of the input by `change(item)`."""
    in_params("turn/start", lambda params, *_: params.update(input=[change(item) for item in params["input"]]))


@variant
def input_under_data() -> None:
    in_items(lambda item: {"type": "text", "data": {"text": item["text"]}} if item["type"] == "text" else item)


@variant
def input_with_its_role() -> None:
    in_items(lambda item: {**item, "role": "user"})


@variant
def prompt_lost_in_the_turn() -> None:
    in_items(lambda item: {**item, "text": item["text"].split()[0]} if item["type"] == "text" else item)


@variant
def images_lost_in_the_turn() -> None:
    in_params("turn/start", lambda params, *_: params.update(input=[i for i in params["input"] if i["type"] == "text"]))


@variant
def images_as_data() -> None:
    in_items(lambda item: {"type": "image", "image_url": item["url"]} if item["type"] == "image" else item)


@variant
def sandbox_always_read_only() -> None:
    put("thread/start", sandbox="read-only")


@variant
def everything_allowed_by_default() -> None:
    def allowed(params: Any, _: Any, settings: Any) -> None:
        if settings.sandbox == "read-only":
            params["sandbox"] = "danger-full-access"

    in_params("thread/start", allowed)


@variant
def sandbox_in_camel_case() -> None:
    camel = {"read-only": "readOnly", "workspace-write": "workspaceWrite"}
    in_params("thread/start", lambda params, *_: params.update(sandbox=camel[params["sandbox"]]))


@variant
def model_lost_in_the_thread() -> None:
    drop("thread/start", "model")


@variant
def folder_lost_in_the_thread() -> None:
    drop("thread/start", "cwd")


@variant
def policy_lost_in_the_thread() -> None:
    drop("thread/start", "approvalPolicy")


@variant
def effort_lost_in_the_turn() -> None:
    drop("turn/start", "effort")


@variant
def schema_lost_in_the_turn() -> None:
    drop("turn/start", "outputSchema")


@variant
def schema_sorted_in_the_turn() -> None:
    def change(params: Params, *_: Any) -> None:
        if "outputSchema" in params:
            params["outputSchema"] = dict(sorted(params["outputSchema"].items()))

    in_params("turn/start", change)


@variant
def a_schema_for_every_turn() -> None:
    in_params("turn/start", lambda params, *_: params.setdefault("outputSchema", {}))


@variant
def tools_lost_in_the_thread() -> None:
    drop("thread/start", "dynamicTools")


def in_tools(change: Any) -> None:
    """Replace the dynamic tools of a thread that has some by `change(tools)`."""

    def changed(params: Params, *_: Any) -> Params:
        if params.get("dynamicTools"):
            params["dynamicTools"] = change(params["dynamicTools"])
        return params

    after(payloads, "thread_start", changed)


@variant
def tools_in_reverse() -> None:
    in_tools(lambda tools: tools[::-1])


@variant
def tools_with_their_type() -> None:
    in_tools(lambda tools: [{"type": "function", **tool} for tool in tools])


@variant
def tools_in_the_turn_too() -> None:
    in_params("turn/start", lambda params, asked, *_: params.update(tools=list(asked.tools.definitions)))


@variant
def a_tool_of_the_proxy() -> None:
    own = {"name": "now", "description": "The time", "inputSchema": {"type": "object"}}
    in_params("thread/start", lambda params, *_: params.setdefault("dynamicTools", [own]))


@variant
def interrupt_without_the_turn() -> None:
    in_method("turn/interrupt", lambda params: params.pop("turnId"))


@variant
def interrupt_of_turn_zero() -> None:
    old = Exchange._interrupt

    async def interrupt(self: Exchange, server: AppServer) -> None:
        self._turn = "never"
        await old(self, server)

    Exchange._interrupt = interrupt


def unanswered(method: str) -> None:
    """Let the requests of one method go without an answer."""
    old = AppServer._answer

    async def answer(self: AppServer, asked: Message) -> None:
        if asked.method != method:
            await old(self, asked)

    AppServer._answer = answer


@variant
def questions_not_answered() -> None:
    unanswered("item/tool/requestUserInput")


@variant
def unknown_requests_not_answered() -> None:
    unanswered("item/of/a/later/version")


@variant
def questions_answered_with_an_error() -> None:
    del ANSWERS["item/tool/requestUserInput"]


@variant
def answers_in_a_list() -> None:
    ANSWERS["item/tool/requestUserInput"] = {"answers": []}


@variant
def approvals_in_words_of_v1() -> None:
    ANSWERS["item/commandExecution/requestApproval"] = {"decision": "denied"}


@variant
def decisions_without_an_object() -> None:
    ANSWERS["item/fileChange/requestApproval"] = "decline"


@variant
def forms_of_a_server_accepted() -> None:
    ANSWERS["mcpServer/elicitation/request"] = {"action": "accept", "content": {"colour": "red"}}


@variant
def permissions_given() -> None:
    ANSWERS["item/permissions/requestApproval"] = {"permissions": {"network": {"enabled": True}}, "scope": "turn"}


@variant
def replies_with_a_text_as_id() -> None:
    old = AppServer.reply

    async def reply(self: AppServer, number: Any, result: Any) -> None:
        await old(self, str(number), result)

    AppServer.reply = reply


@variant
def deltas_opted_out_of() -> None:
    able = {"optOutNotificationMethods": ["item/agentMessage/delta"]}
    in_method("initialize", lambda params: params.update(capabilities={**params.get("capabilities", {}), **able}))


@variant
def requests_with_the_id_zero_not_answered() -> None:
    old = AppServer._answer

    async def answer(self: AppServer, asked: Message) -> None:
        if asked.id:
            await old(self, asked)

    AppServer._answer = answer


@variant
def refusals_of_the_app_server_unread() -> None:
    old = AppServer._answered

    def answered(self: AppServer, message: Params) -> None:
        if "error" not in message:
            old(self, message)

    AppServer._answered = answered


@variant
def a_turn_goes_on_after_its_calls() -> None:
    async def nothing(self: Exchange, server: AppServer) -> None:
        pass

    Exchange._interrupt = nothing
