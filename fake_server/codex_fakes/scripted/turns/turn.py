"""One turn of the scripted fake, from the user's input to turn/completed, in the order of the real binary.

`run` is a generator: it emits what happens and yields what it waits for (`Ticket`, `Sleep`, `Gate`, `Pause`). Each request to the
model is one `Sampling`; when it ends, the calls of the reply are run one after the other, and their outputs are the next
request, until a reply asks for nothing more. Order and texts come from recordings; see turn.json and REAL-51 to REAL-80.
"""

from __future__ import annotations

from codex_fakes.scripted.state.ids import uuid4
from codex_fakes.scripted.state.waits import Gate, Pause, Quiet, Sleep
from codex_fakes.scripted.turns.calls import Aborted
from codex_fakes.scripted.turns.tools import Tools
from codex_replay.protocol.turn.frames import add_usage, error_v2, failure, fill, usage_values
from codex_replay.protocol.turn.stream import Sampling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from codex_fakes.scripted.state.model import Model
    from codex_fakes.scripted.state.thread import Thread

    Run = Generator[Any, None, None]

_LOOK = 64  # events of one reply between two checks of the client


class Turn:
    """A turn: `id` is the submission that began it; `items` are the user's, as v2's turn/start takes them."""

    def __init__(self, thread: Thread, model: Model, table: dict[str, Any], items: list[dict[str, Any]], schema: Any) -> None:
        self.id = thread.submit()
        self.thread = thread
        self.table = table
        self.schema = schema
        self._model = model
        self._items = items
        self._tools = Tools(thread, self, table)
        self._shown: dict[str, Any] = {"items": [], "status": "completed", "error": None}
        self._error: dict[str, Any] | None = None
        self._last_message: str | None = None

    def sentence(self, key: str, /, **values: Any) -> str:
        """Return a text of the table's "sentences"."""
        text: str = fill(self.table["sentences"][key], values)
        return text

    # -- the whole ----------------------------------------------------------------------------------------------------

    def run(self) -> Run:
        """Run the turn to its end."""
        thread = self.thread
        thread.turns.append(self._shown)
        thread.emit("task-started", {"window": thread.settings.window()})
        self._user_message()
        yield Quiet()
        try:
            yield from self._samplings()
        except Aborted:
            self.abort()
            return
        status = "failed" if self._error is not None else "completed"
        # Errors are not kept, so the turn is shown again as completed.
        thread.emit("task-complete", {"lastMessage": self._last_message, "status": status, "error": self._error})

    def abort(self) -> None:
        """End the turn as an interrupt does: calls without an output get one, and the model's input has a note."""
        thread = self.thread
        self._tools.abandon()
        text = self.sentence("turn-aborted")
        thread.history.append(_message("user", "input_text", text))
        self._shown["status"] = "interrupted"
        thread.emit("turn-aborted")
        thread.answer_interrupts()
        thread.emit("turn-interrupted")

    def _user_message(self) -> None:
        thread = self.thread
        values = user_values(self._items)
        thread.history.append(user_history(self._items))
        thread.raw(thread.history[-1])
        thread.preview = thread.preview or values["message"]
        thread.asked, thread.model = True, thread.settings.model
        # A text of white space alone is not in the later history.
        content = [part for part in values["contentV2"] if part["type"] != "text" or part["text"].strip()]
        self._shown["items"].append({"type": "userMessage", "content": content})
        thread.emit("user-message", {"item": uuid4(), **values})

    def _samplings(self) -> Run:
        thread = self.thread
        while True:
            # Before the first request, too: the real server joins a message that is already there into it.
            steered, thread.steered = thread.steered, []
            inputs = [user_history(items) for items in steered]
            thread.history += inputs
            thread.raw(*inputs)
            sampling = Sampling(self.table["model"])
            yield from self._sample(sampling)
            if self._error is not None:
                return
            if diff := self._tools.diff.text():
                thread.emit("turn-diff", {"diff": diff})
            if not self._tools.ran and not thread.steered:
                self._last_message = sampling.last_message
                return

    # -- one request to the model -------------------------------------------------------------------------------------

    def _sample(self, sampling: Sampling) -> Run:
        """Ask the model until a reply is whole; `sampling` is the last attempt. If no retry is left, set the turn's error."""
        requests, streams = self.thread.settings.retries()
        requested = streamed = 0
        thread = self.thread
        self._tools.ran = 0
        while True:
            reply = self._model.ask(self.body(), {"thread": self.thread.id, "turn": self.id}, self.thread.settings.url())
            if reply.wait_ms:
                yield Sleep(reply.wait_ms / 1000)
            if reply.failure is None:
                thread.limits = reply.limits or thread.limits or {}
                self._usage()
                yield from self._stream(reply.acts, reply.results, sampling)
                if sampling.end is not None and "completed" in sampling.end:
                    return
            cause = reply.failure or {"url": self.thread.settings.url(), **(sampling.end or {})}
            failed = failure(self.table["errors"], {"text": "", **cause})
            if "request" in failed["retry"] and requested < requests:
                requested += 1
                continue
            requested = 0
            if "stream" in failed["retry"] and streamed < streams:
                streamed += 1
                self._reconnecting(failed, streamed, streams)
                sampling.__init__(self.table["model"])  # type: ignore[misc]
                yield Pause()
                continue
            self._fail(failed)
            return

    def _stream(self, acts: list[Any], results: dict[str, Any], sampling: Sampling) -> Run:
        thread = self.thread
        self._tools.results = results
        done = 0
        for number, act in enumerate(acts):
            if type(act) is not tuple:
                for name, values in sampling.receive(act):
                    if name == "reasoning-completed":
                        raw = thread.settings.config.get("show_raw_agent_reasoning")
                        values["shown"] = values["content"] if raw else []
                    thread.emit(name, values)
                    if name == "agent-message-completed":
                        self._shown["items"].append({"type": "agentMessage", "text": values["text"]})
                    elif name == "reasoning-completed":
                        shown = {"type": "reasoning", "summary": values["summary"], "content": values["shown"]}
                        self._shown["items"].append(shown)
                thread.history += sampling.history[done:]
                thread.raw(*sampling.history[done:])
                done = len(sampling.history)
                if sampling.end is not None:
                    break
                if number % _LOOK == _LOOK - 1:
                    yield Pause()
                continue
            what, how = act
            if what == "end":
                if how == "idle":
                    yield Sleep(thread.settings.idle_seconds())
                sampling.close(how)
                break
            yield from self._tools.run(sampling)  # tools run while the stream stands still
            yield Sleep(how / 1000) if what == "wait" else Gate(thread.steered)
        sampling.close()
        if sampling.usage is not None:
            thread.total, thread.last = add_usage(thread.total, sampling.usage), sampling.usage
        if sampling.end is not None and "completed" in sampling.end:
            self._usage()
        yield from self._tools.run(sampling, ended=True)

    def _usage(self) -> None:
        thread = self.thread
        thread.emit("usage", usage_values(thread.total, thread.last, thread.settings.window(), thread.limits))

    # -- what goes wrong ----------------------------------------------------------------------------------------------

    def _reconnecting(self, failed: dict[str, Any], n: int, limit: int) -> None:
        message = self.sentence("reconnecting", n=n, limit=limit)
        info = {"response_stream_disconnected": {"http_status_code": failed.get("streamStatus")}}
        values = {"message": message, "info": info, "details": failed["message"]}
        self.thread.emit("stream-error", {**values, "error": error_v2(message, info, failed["message"])})

    def _fail(self, failed: dict[str, Any]) -> None:
        thread = self.thread
        window = thread.settings.window()
        if failed.get("full") and window is not None:
            # Codex takes the context for full, whatever was counted.
            empty = dict.fromkeys(("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens"), 0)
            thread.total = thread.last = {**empty, "total_tokens": window}
            self._usage()
        self._error = error_v2(failed["message"], failed["info"])
        thread.emit("error", {"message": failed["message"], "info": failed["info"], "error": self._error})

    # -- the request --------------------------------------------------------------------------------------------------

    def body(self) -> dict[str, Any]:
        """Return the body of the real binary's next request, as far as it can be derived.

        Left out: the base instructions of the binary itself, its permission and skill texts, and the schemas of its tools.
        """
        settings = self.thread.settings
        known = settings.window() is not None
        input_: list[dict[str, Any]] = []
        told = (*self.thread.words, settings.developer_instructions)
        input_ += [_message("developer", "input_text", words) for words in told if words]
        context = f"<environment_context>\n  <cwd>{settings.cwd}</cwd>\n  <shell>bash</shell>\n</environment_context>"
        input_.append(_message("user", "input_text", context))
        body: dict[str, Any] = {
            "model": settings.model,
            "instructions": settings.base_instructions,
            "input": input_ + self.thread.history,
            "tools": [*_TOOLS, *map(_dynamic, self.thread.dynamic_tools)],
            "tool_choice": "auto",
            "parallel_tool_calls": known,
            "reasoning": {"effort": settings.effort or "medium", "summary": settings.summary or "auto"} if known else None,
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"] if known else [],
            "prompt_cache_key": self.thread.id,
        }
        text: dict[str, Any] = {"verbosity": "low"} if settings.model == "gpt-5.2" else {}
        if self.schema is not None:
            text["format"] = {"type": "json_schema", "strict": True, "schema": self.schema, "name": "codex_output_schema"}
        return {**body, "text": text} if text else body


_TOOLS = [
    {"type": "function", "name": "shell_command"},
    {"type": "function", "name": "list_mcp_resources"},
    {"type": "function", "name": "list_mcp_resource_templates"},
    {"type": "function", "name": "read_mcp_resource"},
    {"type": "function", "name": "update_plan"},
    {"type": "custom", "name": "apply_patch"},
    {"type": "web_search", "external_web_access": False},
    {"type": "function", "name": "view_image"},
]


def _dynamic(tool: dict[str, Any]) -> dict[str, Any]:
    name, about, schema = tool.get("name"), tool.get("description"), tool.get("inputSchema")
    return {"type": "function", "name": name, "description": about, "strict": False, "parameters": schema}


def _message(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def user_values(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the values of the happening "user-message" for v2 input items (text, image, localImage)."""
    content, content_v2 = [], []
    texts, images, local, elements = [], [], [], []
    for item in items:
        if item["type"] == "text":
            shown = {"type": "text", "text": item["text"], "text_elements": item.get("text_elements", [])}
            content.append(shown)
            content_v2.append(shown)
            texts.append(item["text"])
            elements += shown["text_elements"]
        elif item["type"] == "image":
            content.append({"type": "image", "image_url": item["url"]})
            content_v2.append({"type": "image", "url": item["url"]})
            images.append(item["url"])
        elif item["type"] == "localImage":
            content.append({"type": "local_image", "path": item["path"]})
            content_v2.append({"type": "localImage", "path": item["path"]})
            local.append(item["path"])
        elif item["type"] == "skill":
            skill = {"type": "skill", "name": item.get("name"), "path": item.get("path")}
            content.append(skill)
            content_v2.append(skill)
    return {
        "content": content,
        "contentV2": content_v2,
        "message": "".join(texts),
        "images": images,
        "localImages": local,
        "textElements": elements,
    }


def user_history(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the user's input as the model gets it."""
    parts = []
    for item in items:
        if item["type"] == "text":
            parts.append({"type": "input_text", "text": item["text"]})
        elif item["type"] == "image":
            parts += [{"type": "input_text", "text": "<image>"}, {"type": "input_image", "image_url": item["url"]}]
            parts.append({"type": "input_text", "text": "</image>"})
        elif item["type"] == "localImage":
            # The fake opens no file, so it has none to show; this is the real binary's text for a missing file.
            path = item["path"]
            why = f"failed to read image at {path}: No such file or directory (os error 2)"
            parts.append({"type": "input_text", "text": f"Codex could not read the local image at `{path}`: {why}"})
    return {"type": "message", "role": "user", "content": parts}
