"""Every value that this suite holds an editor to letter by letter, and the table of them that docs/editor-client.md shows.

The cases take the values from here, and `tests/project/test_exact_values.py` holds the page to `ROWS`, so that they cannot drift
apart.
"""

from __future__ import annotations

#: The word behind the codex that an editor is given.
SUBCOMMAND = "app-server"
#: The first messages, in this order; the second is a notification and the others are requests.
OPENING = ("initialize", "initialized", "thread/start", "turn/start")
INITIALIZED = {"method": "initialized"}
#: The members of thread/start next to cwd, and those of turn/start: these and no others.
THREAD_START = {"sandbox": None}
TURN_START = ("threadId", "input", "cwd")
INTERRUPT = "turn/interrupt"
#: The keys of its params: these and no others.
INTERRUPTED = ("threadId", "turnId")
#: The keys of clientInfo: these and no others.
CLIENT_INFO = ("name", "title", "version")
#: What thread/start may have for its sandbox, or leave out: nothing that frees Codex of one.
SANDBOXES = (None, "read-only", "workspace-write")
#: What nobody but the user may switch off, as the keys of thread/start and turn/start have it.
SWITCHED_OFF = {
    "approvalPolicy": "never",
    "sandbox": "danger-full-access",
    "sandboxPolicy.type": "dangerFullAccess",
    "config.approval_policy": "never",
    "config.sandbox_mode": "danger-full-access",
}
#: The kind of an approval as it is reported -> the request that asks for it.
APPROVALS = {"command": "item/commandExecution/requestApproval", "fileChange": "item/fileChange/requestApproval"}
#: What the user does -> what the server is told.
DECISIONS = {"accept": "accept", "decline": "decline", "dismiss": "cancel"}


def code(*values: object) -> str:
    """Return values as a cell of the table shows them: as code, `null` for None."""
    return ", ".join("`null`" if value is None else f"`{value}`" for value in values)


#: What it is, what it must be, and the check that holds an editor to it.
ROWS: tuple[tuple[str, str, str], ...] = (
    ("the codex is started with the word", code(SUBCOMMAND), "handshake-command"),
    ("the first messages, in this order", code(*OPENING), "handshake-order"),
    ("`initialized`, beside `jsonrpc`", '`{"method": "initialized"}`', "handshake-initialized"),
    ("`initialize`: the keys of `params`", code("clientInfo"), "handshake-client-info"),
    ("`clientInfo`: the keys, each a text", code(*CLIENT_INFO), "handshake-client-info"),
    ("`thread/start`: `cwd`", "the absolute path of the project", "thread-params"),
    ("`thread/start`: `sandbox`, of an editor that has more than the example", code(*SANDBOXES), "thread-params"),
    ("`thread/start`: the members of the example", '`{"cwd": …, "sandbox": null}`', "thread-members"),
    (
        "`thread/start` and `turn/start` never say",
        ", ".join(f"`{key}: {value}`" for key, value in SWITCHED_OFF.items()),
        "safeguards-kept",
    ),
    ("`turn/start`: `threadId`", "the `thread.id` that `thread/start` answered", "turn-params"),
    ("`turn/start`: `input`", '`[{"type": "text", "text": …}]`: the prompt to the letter', "turn-input"),
    ("`turn/start`: the members of the example", code(*TURN_START), "turn-members"),
    ("`turn/start`: `cwd`", "the absolute path of the project", "turn-members"),
    (f"`{INTERRUPT}`: the keys of `params`", code(*INTERRUPTED), "interrupt-params"),
    *((f"the request that is reported as kind `{kind}`", code(method), "approval-shown") for kind, method in APPROVALS.items()),
    *(
        (f"its answer when the driver says `{choice}`", f'`{{"id": …, "result": {{"decision": "{told}"}}}}`', "approval-reply")
        for choice, told in DECISIONS.items()
    ),
    ("the answer to a request that it does not know", '`{"id": …, "error": {"code": …, "message": …}}`', "unknown-request"),
)
