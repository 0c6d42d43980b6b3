"""Print a turn in the form of `codex exec` 0.92, as recorded: as text on stderr, or as JSON lines on stdout (`--json`)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.turn.tools import join
from codex_replay.protocol.versions import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codex_fakes.scripted.state.thread import Thread

_STARTED = "mcp startup: no servers"
_LINES = 20  # of a command's output


class Output:
    """Print the events of a turn of `codex exec`.

    At the end of the turn, `failed` is True if the turn failed. `_show` maps each event type to the function that prints
    it.
    """

    failed = False
    _show: Mapping[str, Callable[[dict[str, Any]], None]]

    def begin(self) -> None:
        """Before the turn."""
        raise NotImplementedError

    def event(self, message: dict[str, Any]) -> None:
        """Print one event (`EventMsg`) if `codex exec` prints events of its type."""
        show = self._show.get(message["type"])
        if show is not None:
            show(message)

    def end(self, last: str | None) -> str | None:
        """Print the end of the turn, and return the last message of the model.

        `last` is the file to which the last message is written.
        """
        raise NotImplementedError


class TextOutput(Output):
    """The output for people: progress on stderr, the last message on stdout."""

    def __init__(self, thread: Thread, prompt: str) -> None:
        self._thread, self._prompt = thread, prompt
        self._message: str | None = None
        self._tokens: int | None = None
        self._show = {
            "agent_message": lambda m: self._write_out(f"codex\n{m['message']}"),
            "agent_reasoning_section_break": lambda m: self._think(""),
            "agent_reasoning": lambda m: self._think(f"thinking\n{m['text']}"),
            "agent_reasoning_raw_content": lambda m: self._write_out(f"thinking\n{m['text']}"),
            "exec_command_end": self._command,
            "patch_apply_begin": self._patch,
            "patch_apply_end": self._patched,
            "entered_review_mode": lambda m: self._write_out(_STARTED),  # the reviewer is a thread, too
            "turn_diff": lambda m: self._write_out(f"file update:\n{m['unified_diff']}"),
            "web_search_begin": lambda m: self._write_out("🌐 Searching the web..."),
            "web_search_end": lambda m: self._write_out(f"🌐 Searched: {m['query']}"),
            "plan_update": self._plan,
            "mcp_tool_call_begin": lambda m: self._write_out(f"tool {_invocation(m)}"),
            "mcp_tool_call_end": self._mcp,
            "view_image_tool_call": lambda m: self._write_out(f"viewed image {m['path']}"),
            "warning": lambda m: self._write_out(f"warning: {m['message']}"),
            "stream_error": lambda m: self._write_out(_details(m)),
            "error": self._error,
            "token_count": self._count,
            "task_complete": self._complete,
        }

    def _think(self, text: str) -> None:
        if not self._thread.settings.config.get("hide_agent_reasoning"):
            self._write_out(text)

    @staticmethod
    def _write_out(text: str) -> None:
        sys.stderr.write(text + "\n")

    def begin(self) -> None:
        """Print the settings and the prompt of the run."""
        settings = self._thread.settings
        self._write_out(f"OpenAI Codex v{DEFAULT} (research preview)\n--------")
        for name, value in (
            ("workdir", settings.cwd),
            ("model", settings.model),
            ("provider", settings.provider),
            ("approval", settings.policy),
            ("sandbox", _sandbox(settings.sandbox)),
            ("reasoning effort", settings.effort or "none"),
            ("reasoning summaries", settings.summary or "auto"),
            ("session id", self._thread.id),
        ):
            self._write_out(f"{name}: {value}")
        self._write_out(f"--------\nuser\n{self._prompt}\n{_STARTED}")

    def _command(self, m: dict[str, Any]) -> None:
        how = "succeeded" if m["exit_code"] == 0 else f"exited {m['exit_code']}"
        shown = "\n".join(m["aggregated_output"].replace("\r\n", "\n").removesuffix("\n").split("\n")[:_LINES])
        self._write_out(f"exec\n{join(m['command'])} in {m['cwd']} {how} in {_ms(m)}ms:\n{shown}")

    def _patch(self, m: dict[str, Any]) -> None:
        self._write_out("file update")
        for path, change in m["changes"].items():
            mark = {"add": "A", "delete": "D", "update": "M"}[change["type"]]
            text = change.get("content", change.get("unified_diff", ""))
            self._write_out(f"{mark} {path}\n{text.rstrip(chr(10))}")

    def _patched(self, m: dict[str, Any]) -> None:
        status = 0 if m["success"] else 1
        text = m["stdout"] if m["success"] else m["stderr"]
        self._write_out(f"apply_patch(auto_approved=true) exited {status} in 0ms:\n{text.rstrip(chr(10))}")

    def _plan(self, m: dict[str, Any]) -> None:
        self._write_out("Plan update")
        if m.get("explanation"):
            self._write_out(m["explanation"])
        marks = {"completed": "✓", "in_progress": "→", "pending": "•"}
        for step in m["plan"]:
            self._write_out(f"  {marks[step['status']]} {step['step']}")

    def _mcp(self, m: dict[str, Any]) -> None:
        import json  # the one place where JSON is shown indented

        result = m["result"].get("Ok")
        text = "" if result is None else "\n" + json.dumps(result, indent=2, ensure_ascii=False)
        self._write_out(f"{_invocation(m)} {'failed' if result is None else 'success'} in {_ms(m)}ms:{text}")

    def _error(self, m: dict[str, Any]) -> None:
        self.failed = True
        self._write_out(f"ERROR: {m['message']}")

    def _count(self, m: dict[str, Any]) -> None:
        if m["info"] is not None:
            total = m["info"]["total_token_usage"]
            self._tokens = max(0, total["input_tokens"] - total["cached_input_tokens"]) + total["output_tokens"]

    def _complete(self, m: dict[str, Any]) -> None:
        self._message = m["last_agent_message"]

    def end(self, last: str | None) -> str | None:
        """Print the number of tokens on stderr, and the last message on stdout."""
        if last is not None and self._message is None:
            self._write_out(f"Warning: no last agent message; wrote empty content to {last}")
        if self._tokens is not None:
            self._write_out(f"tokens used\n{self._tokens:,}")
        sys.stderr.flush()
        if self._message is not None:
            sys.stdout.write(self._message.removesuffix("\n") + "\n")
            sys.stdout.flush()
        return self._message


class JsonOutput(Output):
    """The output for programs: one JSON object per line on stdout."""

    def __init__(self, thread: Thread, prompt: str) -> None:
        self._thread = thread
        self._message: str | None = None
        self._error: str | None = None
        self._usage = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
        self._numbers = 0
        self._items: dict[str, str] = {}  # call id -> item id
        self._todo: tuple[str, list[dict[str, Any]]] | None = None
        self._changes: dict[str, Any] = {}
        self._show = {
            "task_started": lambda m: self._write_out({"type": "turn.started"}),
            "agent_message": lambda m: self._item("completed", self._next(), "agent_message", text=m["message"]),
            "agent_reasoning": lambda m: self._item("completed", self._next(), "reasoning", text=m["text"]),
            "exec_command_begin": self._command,
            "exec_command_end": self._commanded,
            "patch_apply_begin": self._patch,
            "patch_apply_end": self._patched,
            "web_search_begin": self._search,
            "web_search_end": self._searched,
            "plan_update": self._plan,
            "mcp_tool_call_begin": self._mcp,
            "mcp_tool_call_end": self._mcped,
            "warning": lambda m: self._item("completed", self._next(), "error", message=m["message"]),
            "stream_error": lambda m: self._write_out({"type": "error", "message": _details(m)}),
            "error": self._failed,
            "token_count": self._count,
            "task_complete": self._complete,
        }

    @staticmethod
    def _write_out(value: dict[str, Any]) -> None:
        sys.stdout.write(dumps(value).decode() + "\n")
        sys.stdout.flush()

    def _next(self, call: str | None = None) -> str:
        number = f"item_{self._numbers}"
        self._numbers += 1
        if call is not None:
            self._items[call] = number
        return number

    def _item(self, what: str, number: str, kind: str, **fields: Any) -> None:
        self._write_out({"type": f"item.{what}", "item": {"id": number, "type": kind, **fields}})

    def begin(self) -> None:
        """Show the thread's id."""
        self._write_out({"type": "thread.started", "thread_id": self._thread.id})

    def _command(self, m: dict[str, Any]) -> None:
        fields = {"command": join(m["command"]), "aggregated_output": "", "exit_code": None, "status": "in_progress"}
        self._item("started", self._next(m["call_id"]), "command_execution", **fields)

    def _commanded(self, m: dict[str, Any]) -> None:
        status = "completed" if m["exit_code"] == 0 else "failed"
        fields = {"command": join(m["command"]), "aggregated_output": m["aggregated_output"], "exit_code": m["exit_code"]}
        self._item("completed", self._items[m["call_id"]], "command_execution", **fields, status=status)

    def _patch(self, m: dict[str, Any]) -> None:
        self._changes[m["call_id"]] = m["changes"]

    def _patched(self, m: dict[str, Any]) -> None:
        changes = self._changes.pop(m["call_id"])
        listed = [{"path": path, "kind": changes[path]["type"]} for path in sorted(changes)]
        status = "completed" if m["success"] else "failed"
        self._item("completed", self._next(), "file_change", changes=listed, status=status)

    def _search(self, m: dict[str, Any]) -> None:
        self._searching("started", self._next(m["call_id"]), m["call_id"], "", {"type": "other"})

    def _searched(self, m: dict[str, Any]) -> None:
        self._searching("completed", self._items[m["call_id"]], m["call_id"], m["query"], m["action"])

    @staticmethod
    def _searching(what: str, number: str, call: str, query: str, action: Any) -> None:
        # The real binary writes two members named id: the item's, and the call's.
        fields = dumps({"id": call, "query": query, "action": action}).decode()[1:]
        head = f'{{"type":"item.{what}","item":{{"id":"{number}","type":"web_search",'
        sys.stdout.write(f"{head}{fields}}}\n")
        sys.stdout.flush()

    def _plan(self, m: dict[str, Any]) -> None:
        items = [{"text": step["step"], "completed": step["status"] == "completed"} for step in m["plan"]]
        what = "started" if self._todo is None else "updated"
        self._todo = (self._next() if self._todo is None else self._todo[0], items)
        self._item(what, self._todo[0], "todo_list", items=items)

    def _mcp(self, m: dict[str, Any]) -> None:
        self._item(
            "started", self._next(m["call_id"]), "mcp_tool_call", **m["invocation"], result=None, error=None, status="in_progress"
        )

    def _mcped(self, m: dict[str, Any]) -> None:
        found = m["result"].get("Ok")
        result = None if found is None else {"content": found["content"], "structured_content": None}
        error = {"message": m["result"]["Err"]} if found is None else None
        status = "failed" if found is None else "completed"
        fields = {**m["invocation"], "result": result, "error": error, "status": status}
        self._item("completed", self._items[m["call_id"]], "mcp_tool_call", **fields)

    def _failed(self, m: dict[str, Any]) -> None:
        self.failed, self._error = True, m["message"]
        self._write_out({"type": "error", "message": m["message"]})

    def _count(self, m: dict[str, Any]) -> None:
        if m["info"] is not None:
            total = m["info"]["total_token_usage"]
            self._usage = {key: total[key] for key in self._usage}

    def _complete(self, m: dict[str, Any]) -> None:
        self._message = m["last_agent_message"]
        if self._todo is not None:
            self._item("completed", self._todo[0], "todo_list", items=self._todo[1])
        if self._error is not None:
            self._write_out({"type": "turn.failed", "error": {"message": self._error}})
        else:
            self._write_out({"type": "turn.completed", "usage": self._usage})

    def end(self, last: str | None) -> str | None:
        """Return the last message."""
        if last is not None and self._message is None:
            sys.stderr.write(f"Warning: no last agent message; wrote empty content to {last}\n")
        return self._message


def _details(m: dict[str, Any]) -> str:
    return f"{m['message']} ({m['additional_details']})" if m.get("additional_details") else str(m["message"])


def _invocation(m: dict[str, Any]) -> str:
    call = m["invocation"]
    return f"{call['server']}.{call['tool']}({dumps(call['arguments']).decode()})"


def _ms(m: dict[str, Any]) -> int:
    return int(m["duration"]["secs"]) * 1000 + int(m["duration"]["nanos"]) // 1_000_000


def _sandbox(sandbox: dict[str, Any]) -> str:
    """Return the name of a sandbox in the form for the header of the output."""
    if sandbox["type"] != "workspaceWrite":
        return "read-only" if sandbox["type"] == "readOnly" else "danger-full-access"
    temporary = [name for name, key in (("/tmp", "excludeSlashTmp"), ("$TMPDIR", "excludeTmpdirEnvVar")) if not sandbox[key]]
    places = ", ".join(["workdir", *temporary, *sandbox["writableRoots"]])
    return f"workspace-write [{places}]" + (" (network access enabled)" if sandbox["networkAccess"] else "")
