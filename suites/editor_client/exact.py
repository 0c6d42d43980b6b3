"""Every value that this suite compares exactly, as rows of a table in docs/editor-client.md.

The cases import these values, and `tests/project/test_exact_values.py` compares docs/editor-client.md with `ROWS`.
"""

from __future__ import annotations

#: The argument with which an editor starts its codex.
SUBCOMMAND = "app-server"
#: The first messages, in this order; the second is a notification and the others are requests.
OPENING = ("initialize", "initialized", "thread/start", "turn/start")
INITIALIZED = {"method": "initialized"}
#: The only members of thread/start besides cwd, and the only members of turn/start.
THREAD_START = {"sandbox": None}
TURN_START = ("threadId", "input", "cwd")
INTERRUPT = "turn/interrupt"
#: The only keys of the params of turn/interrupt.
INTERRUPTED = ("threadId", "turnId")
#: The only keys of clientInfo.
CLIENT_INFO = ("name", "title", "version")
#: The allowed values of `sandbox` in thread/start (it may be absent): none of them disables the sandbox.
SANDBOXES = (None, "read-only", "workspace-write")
#: The settings that only the user may disable, by the keys of thread/start and turn/start.
SWITCHED_OFF = {
    "approvalPolicy": "never",
    "sandbox": "danger-full-access",
    "sandboxPolicy.type": "dangerFullAccess",
    "config.approval_policy": "never",
    "config.sandbox_mode": "danger-full-access",
}
#: The kind of an approval in the driver's report -> the request of the server.
APPROVALS = {"command": "item/commandExecution/requestApproval", "fileChange": "item/fileChange/requestApproval"}
#: The user's choice -> the decision in the reply to the server.
DECISIONS = {"accept": "accept", "decline": "decline", "dismiss": "cancel"}


def code(*values: object) -> str:
    """Return values in the form of a table cell: as code, with `null` for None."""
    return ", ".join("`null`" if value is None else f"`{value}`" for value in values)


#: The name of the value, the required value, and the check that compares it.
ROWS: tuple[tuple[str, str, str], ...] = (
    ("the argument of codex when the editor starts it", code(SUBCOMMAND), "handshake-command"),
    ("the first messages, in this order", code(*OPENING), "handshake-order"),
    ("`initialized`; `jsonrpc` is optional", '`{"method": "initialized"}`', "handshake-initialized"),
    ("`clientInfo`: the keys, each with a string", code(*CLIENT_INFO), "handshake-client-info"),
    ("`thread/start`: `cwd`", "the absolute path of the project", "thread-params"),
    ("`thread/start`: `sandbox`, if the editor sends more than the example", code(*SANDBOXES), "thread-params"),
    ("`thread/start`: the members of the example", '`{"cwd": …, "sandbox": null}`', "thread-members"),
    (
        "`thread/start` and `turn/start` never contain",
        ", ".join(f"`{key}: {value}`" for key, value in SWITCHED_OFF.items()),
        "safeguards-kept",
    ),
    ("`turn/start`: `threadId`", "the `thread.id` of the response to `thread/start`", "turn-params"),
    ("`turn/start`: `input`", '`[{"type": "text", "text": …}]`: the exact prompt', "turn-input"),
    ("`turn/start`: the members of the example", code(*TURN_START), "turn-members"),
    ("`turn/start`: `cwd`", "the absolute path of the project", "turn-members"),
    (f"`{INTERRUPT}`: the keys of `params`", code(*INTERRUPTED), "interrupt-params"),
    *((f"the request reported as kind `{kind}`", code(method), "approval-shown") for kind, method in APPROVALS.items()),
    *(
        (
            f"the reply of the editor after the choice `{choice}`",
            f'`{{"id": …, "result": {{"decision": "{told}"}}}}`',
            "approval-reply",
        )
        for choice, told in DECISIONS.items()
    ),
    ("the reply to an unknown request", '`{"id": …, "error": {"code": …, "message": …}}`', "unknown-request"),
)
