"""A stand-in for `codex app-server` that does what a prompt tells it, for the tests of the reference proxy.

The prompt holds `PLAN:` and a JSON object: `say` (deltas of one message), `more` (a second message), `raw` (types of raw items),
`calls` (native), `usage`, `fail` (message, codexErrorInfo in both spellings), `foreign` (another thread speaks first), `ask`
(a request of the server's and its params), `die`, `hang` (in mid-turn), `wait` (to be interrupted), `odd` (frames in fragments),
`refuse`, `mute` (no reply), `lost` (the end of the turn is never said). Every line that comes in is appended to the file that
CAPTURE names, with the process id before it.
"""

from __future__ import annotations

import json
import os
import sys

CAPTURE = os.environ.get("CAPTURE")
OUT = sys.stdout.buffer
V1_USAGE = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens")
V2_USAGE = ("inputTokens", "cachedInputTokens", "outputTokens", "reasoningOutputTokens", "totalTokens")
threads = 0


def capture(line: bytes) -> None:
    if CAPTURE:
        with open(CAPTURE, "ab") as file:
            file.write(b"%d %s" % (os.getpid(), line))


def write(value: object, *, odd: bool = False) -> None:
    data = json.dumps(value, ensure_ascii=False).encode() + b"\n"
    if odd:
        for at in range(0, len(data), 37):
            OUT.write(data[at : at + 37])
            OUT.flush()
        return
    OUT.write(data)
    OUT.flush()


def plan_of(params: dict) -> dict:
    for item in params.get("items") or params.get("input") or []:
        text = item.get("text") or (item.get("data") or {}).get("text") or ""
        if "PLAN:" in text:
            plan, _ = json.JSONDecoder().raw_decode(text.partition("PLAN:")[2])
            return dict(plan)
    return {"say": ["Hello."]}


class Turn:
    def __init__(self, thread: str, v2: bool, plan: dict) -> None:
        self.thread, self.v2, self.plan = thread, v2, plan

    def event(self, kind: str, thread: str | None = None, **fields: object) -> None:
        params = {"id": "0", "msg": {"type": kind, **fields}, "conversationId": thread or self.thread}
        write({"method": f"codex/event/{kind}", "params": params}, odd=bool(self.plan.get("odd")))

    def notify(self, method: str, thread: str | None = None, **fields: object) -> None:
        params = {"threadId": thread or self.thread, "turnId": "0", **fields}
        write({"method": method, "params": params}, odd=bool(self.plan.get("odd")))

    def message(self, name: str, deltas: list[str], thread: str | None = None) -> None:
        for delta in deltas:
            self.event("agent_message_content_delta", thread, item_id=name, delta=delta)
            self.notify("item/agentMessage/delta", thread, itemId=name, delta=delta)
            self.event("agent_message_delta", thread, delta=delta)
        whole = "".join(deltas)
        self.event(
            "item_completed", thread, item={"type": "AgentMessage", "id": name, "content": [{"type": "Text", "text": whole}]}
        )
        self.notify("item/completed", thread, item={"type": "agentMessage", "id": name, "text": whole})
        self.event("agent_message", thread, message=whole)

    def run(self) -> None:
        plan = self.plan
        self.notify("turn/started", turn={"id": "0", "status": "inProgress"})
        self.event("task_started")
        self.event("token_count", info=None)
        if plan.get("foreign"):
            self.message("msg_f", ["not yours"], "another-thread")
            self.notify("turn/completed", "another-thread", turn={"id": "0", "status": "completed"})
        if "ask" in plan:
            method, params = plan["ask"]
            write({"id": 77, "method": method, "params": {"threadId": self.thread, **params}})
            capture(sys.stdin.buffer.readline())
        if "say" in plan:
            self.message("msg_1", plan["say"])
        if plan.get("die"):
            os._exit(3)
        if plan.get("hang"):
            sys.stdin.buffer.read()
            return
        if plan.get("wait"):
            return  # until it is interrupted
        if "more" in plan:
            self.message("msg_2", plan["more"])
        for kind in plan.get("raw", []):
            self.notify("rawResponseItem/completed", item={"type": kind})
        if self.calls(plan.get("calls", [])):
            return
        self.usage()
        if not plan.get("lost"):
            self.end()

    def calls(self, calls: list[list[str]]) -> bool:
        for at, (name, arguments) in enumerate(calls):
            item = {"type": "function_call", "name": name, "arguments": arguments, "call_id": f"call_{at}"}
            self.notify("rawResponseItem/completed", item=item)
        if calls:
            self.usage()
            name, arguments = calls[0]
            params = {
                "threadId": self.thread,
                "turnId": "0",
                "callId": "call_0",
                "tool": name,
                "arguments": json.loads(arguments),
            }
            write({"id": 78, "method": "item/tool/call", "params": params})
        return bool(calls)

    def usage(self) -> None:
        spent = self.plan.get("usage", [10, 4, 3, 1, 13])
        if spent is None:
            return
        v1 = dict(
            zip(
                ["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens"],
                spent,
                strict=True,
            )
        )
        v2 = dict(
            zip(["inputTokens", "cachedInputTokens", "outputTokens", "reasoningOutputTokens", "totalTokens"], spent, strict=True)
        )
        self.event("token_count", info={"total_token_usage": v1, "last_token_usage": v1})
        self.notify("thread/tokenUsage/updated", tokenUsage={"total": v2, "last": v2})

    def end(self) -> None:
        fail = self.plan.get("fail")
        turn: dict[str, object] = {"id": "0", "status": "completed", "error": None}
        if fail:
            message, v2_info, v1_info = fail
            turn |= {"status": "failed", "error": {"message": message, "codexErrorInfo": v2_info}}
            self.event("error", message=message, codex_error_info=v1_info)
        self.event("task_complete", last_agent_message=None)
        self.notify("turn/completed", turn=turn)


def interrupted(thread: str, number: object) -> None:
    turn = Turn(thread, True, {})
    turn.event("turn_aborted", reason="interrupted")
    write({"id": number, "result": {}})
    turn.notify("turn/completed", turn={"id": "0", "status": "interrupted", "error": None})


def main() -> None:
    global threads
    while line := sys.stdin.buffer.readline():
        capture(line)
        message = json.loads(line)
        method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
        if number is None or method is None:
            continue
        if method in ("newConversation", "thread/start"):
            threads += 1
            thread = f"thread-{os.getpid()}-{threads}"
            write({"id": number, "result": {"conversationId": thread, "thread": {"id": thread}, "model": params.get("model")}})
        elif method in ("turn/interrupt", "interruptConversation"):
            interrupted(params.get("threadId") or params["conversationId"], number)
        elif method in ("turn/start", "sendUserMessage"):
            plan = plan_of(params)
            if plan.get("mute"):
                continue
            if plan.get("refuse"):
                write({"id": number, "error": {"code": -32600, "message": "Invalid request: no"}})
                continue
            write({"id": number, "result": {"turn": {"id": "0"}}})
            Turn(params.get("threadId") or params["conversationId"], method == "turn/start", plan).run()
        else:
            write({"id": number, "result": {"userAgent": "stand-in"}})


if __name__ == "__main__":
    main()
