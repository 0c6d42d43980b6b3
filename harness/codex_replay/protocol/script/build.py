"""Write scripts in Python: a builder has a method for each item and key of a turn.

The builder does not check its arguments: the reader of scripts checks the whole script and reports errors.

Example:

    script = ScriptBuilder()
    script.turn().call("add", a=1, b=2)
    script.turn().when(tool="3").text("It is 3.")
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal, Self


class TurnBuilder:
    """One turn of a script. Each method adds an item or sets a key, and returns the same turn, so that calls can be chained."""

    def __init__(self, **keys: Any) -> None:
        self._keys = keys
        self._items: list[dict[str, Any]] = []

    def as_json(self) -> dict[str, Any]:
        """Return the turn in its JSON form."""
        return {**self._keys, **({"items": [dict(item) for item in self._items]} if self._items else {})}

    def _add(self, type_: str, **fields: Any) -> Self:
        self._items.append({"type": type_, **{key: value for key, value in fields.items() if value is not None}})
        return self

    def _set(self, **keys: Any) -> Self:
        self._keys |= {key: value for key, value in keys.items() if value is not None}
        return self

    # -- items -------------------------------------------------------------------------------------------------

    def text(
        self,
        text: str,
        *,
        deltas: Sequence[str] | None = None,
        annotations: Sequence[Mapping[str, Any]] | None = None,
        phase: Literal["commentary", "final_answer"] | None = None,
        id: str | None = None,  # noqa: A002 - the key's name
    ) -> Self:
        """Add a message; `deltas` are the parts in which the text is streamed."""
        return self._add("text", text=text, deltas=_list(deltas), annotations=_list(annotations), phase=phase, id=id)

    def refusal(self, refusal: str) -> Self:
        """Add a message with a refusal."""
        return self._add("refusal", refusal=refusal)

    def call(
        self, name: str, arguments: Mapping[str, Any] | str | None = None, /, *, call_id: str | None = None, **named: Any
    ) -> Self:
        """Add a call of a function.

        The arguments of the call are keywords or a mapping; a string is sent unchanged, even if it is not JSON.
        """
        given = arguments if isinstance(arguments, str) else {**(arguments or {}), **named}
        return self._add("function_call", name=name, arguments=given, call_id=call_id)

    def custom_call(self, name: str, input: str, *, call_id: str | None = None) -> Self:  # noqa: A002 - the key's name
        """Add a call of a custom tool, whose input is a text."""
        return self._add("custom_tool_call", name=name, input=input, call_id=call_id)

    def search(self, query: str | None = None, *, action: Mapping[str, Any] | None = None) -> Self:
        """Add a web search."""
        return self._add("web_search_call", query=query, action=action)

    def reasoning(
        self,
        summary: str | Sequence[str] | None = None,
        *,
        content: str | Sequence[str] | None = None,
        encrypted_content: str | None = None,
    ) -> Self:
        """Add an item of reasoning, with a summary or the full text."""
        texts = {"summary": _text_or_list(summary), "content": _text_or_list(content)}
        return self._add("reasoning", **texts, encrypted_content=encrypted_content)

    def file_search(
        self,
        *queries: str,
        results: Sequence[Mapping[str, Any]] | None = None,
        status: Literal["completed", "failed"] | None = None,
    ) -> Self:
        """Add a call of the file search tool, with its progress events."""
        return self._add("file_search_call", queries=list(queries), results=_list(results), status=status)

    def code_interpreter(
        self, code: str = "", *, outputs: Sequence[Mapping[str, Any]] | None = None, container_id: str | None = None
    ) -> Self:
        """Add a call of the code interpreter; the code is streamed."""
        return self._add("code_interpreter_call", code=code, outputs=_list(outputs), container_id=container_id)

    def image(self, result: str | None = None, *, partial_images: Sequence[str] | None = None, **more: str) -> Self:
        """Add a generated image (base64; default: one pixel); `more` are revised_prompt, size, quality, background, status."""
        return self._add("image_generation_call", result=result, partial_images=_list(partial_images), **more)

    def mcp_tools(self, server_label: str | None = None, *tools: Mapping[str, Any], error: Any = None) -> Self:
        """Add the list of an MCP server's tools, each with its name."""
        return self._add("mcp_list_tools", server_label=server_label, tools=list(tools), error=error)

    def mcp_call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        output: str | None = None,
        error: Any = None,
        server_label: str | None = None,
        status: Literal["completed", "failed", "incomplete"] | None = None,
    ) -> Self:
        """Add a call of an MCP server's tool, with its output or its error (with an error, `status` is "failed")."""
        made = {"name": name, "arguments": arguments, "output": output, "error": error}
        return self._add(
            "mcp_call", **made, server_label=server_label, status=status or ("failed" if error is not None else None)
        )

    def mcp_approval(
        self, name: str, arguments: Mapping[str, Any] | str | None = None, *, server_label: str | None = None
    ) -> Self:
        """Add a request for approval to call a tool of an MCP server."""
        return self._add("mcp_approval_request", name=name, arguments=arguments, server_label=server_label)

    def computer(self, action: Mapping[str, Any] | None = None, *, call_id: str | None = None) -> Self:
        """Add an action of computer use (default: a screenshot)."""
        return self._add("computer_call", action=action, call_id=call_id)

    def local_shell(self, *command: str, call_id: str | None = None) -> Self:
        """Add a command for the local shell, as a list of words."""
        return self._add("local_shell_call", action={"command": list(command)}, call_id=call_id)

    def shell(self, *commands: str, call_id: str | None = None) -> Self:
        """Add a call of the shell tool; the commands are streamed."""
        return self._add("shell_call", action={"commands": list(commands)}, call_id=call_id)

    def shell_output(self, *output: Mapping[str, Any], call_id: str | None = None) -> Self:
        """Add the output of a hosted shell: `stdout`, `stderr` and `outcome` of each command."""
        return self._add("shell_call_output", output=list(output), call_id=call_id)

    def apply_patch(self, operation: Mapping[str, Any], *, call_id: str | None = None) -> Self:
        """Add a call of the patch tool: `type` (create_file, update_file, delete_file), `path`, `diff`."""
        return self._add("apply_patch_call", operation=operation, call_id=call_id)

    def compaction(self, encrypted_content: str | None = None) -> Self:
        """Add a compacted conversation."""
        return self._add("compaction", encrypted_content=encrypted_content)

    def audio(self, data: str = "", transcript: str = "") -> Self:
        """Send audio (base64) and its transcript; the audio is not an item of the response."""
        return self._add("audio", data=data, transcript=transcript)

    def queued(self) -> Self:
        """Start the response with the status `queued`; the item must be the first one of the turn."""
        return self._add("queued")

    def item(self, item: Mapping[str, Any]) -> Self:
        """Add any other output item, sent unchanged."""
        return self._add("item", item=dict(item))

    def event(self, event: Mapping[str, Any]) -> Self:
        """Send an additional event between the events of the reply."""
        return self._add("event", event=dict(event))

    def raw(self, data: str) -> Self:
        """Send additional bytes, unchanged, between the events of the reply."""
        return self._add("raw", data=data)

    def comment(self, text: str = "") -> Self:
        """Send an SSE comment."""
        return self._add("comment", text=text)

    def wait(self, ms: float) -> Self:
        """Pause here for milliseconds."""
        return self._add("wait", ms=ms)

    def gate(self, name: str) -> Self:
        """Stop the reply at the gate `name` until the test releases the gate."""
        return self._add("gate", name=name)

    def failed(self, code: str, message: str | None = None) -> Self:
        """End with `response.failed`."""
        return self._add("failed", code=code, message=message)

    def incomplete(self, reason: str | None = None) -> Self:
        """End with `response.incomplete`."""
        return self._add("incomplete", reason=reason)

    def error(self, code: str | None = None, message: str | None = None, *, param: str | None = None) -> Self:
        """End the reply with an `error` event."""
        return self._add("error", code=code, message=message, param=param)

    # -- the turn ----------------------------------------------------------------------------------------------

    def when(
        self,
        *,
        prompt: str | Sequence[str] | None = None,
        user: str | None = None,
        pattern: str | None = None,
        tool: str | None = None,
        instructions: str | None = None,
        turn: int | None = None,
        **more: Any,
    ) -> Self:
        """Use the turn only for a request that matches the given keys (the keys of `match` in docs/scripts.md)."""
        given = {"user": user, "pattern": pattern, "tool": tool, "instructions": instructions, "turn": turn, **more}
        return self._set(match=_given(prompt=_text_or_list(prompt), **given))

    def expect(self, **wanted: Any) -> Self:
        """Refuse a request that does not match the given keys (the same keys as in `when`)."""
        return self._set(expect=wanted)

    def fault(self, name: str, **parameters: Any) -> Self:
        """Make a mistake in the answer on purpose (docs/scripts.md lists the faults)."""
        return self._set(fault={"name": name, **parameters})

    def status(
        self, status: int, *, error: Mapping[str, Any] | None = None, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Self:
        """Answer with an HTTP error instead of a reply."""
        return self._set(status=status, error=error, body=body, headers=headers)

    def times(self, times: int | Literal["always"]) -> Self:
        """Use the turn for the given number of requests."""
        return self._set(times=times)

    def usage(self, **counts: int) -> Self:
        """Report the given token counts: input_tokens, cached_tokens, output_tokens, reasoning_tokens."""
        return self._set(usage=counts)

    def set(self, **keys: Any) -> Self:
        """Set any other key of a turn: headers, delta, write, delay_ms, first_delay_ms, gate, response_id, end."""
        return self._set(**keys)


class ScriptBuilder:
    """A script written in Python. `turn()` adds a turn; keyword arguments of the constructor are the other keys of the script."""

    def __init__(self, **keys: Any) -> None:
        self._keys = keys
        self._turns: list[TurnBuilder] = []

    def turn(self) -> TurnBuilder:
        """Add an empty turn at the end and return it."""
        self._turns.append(TurnBuilder())
        return self._turns[-1]

    def as_json(self) -> dict[str, Any]:
        """Return the script as JSON values."""
        return {**self._keys, "turns": [turn.as_json() for turn in self._turns]}


def _given(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _list(value: Sequence[Any] | None) -> list[Any] | None:
    return None if value is None else list(value)


def _text_or_list(value: str | Sequence[str] | None) -> str | list[str] | None:
    return value if isinstance(value, str) else _list(value)
