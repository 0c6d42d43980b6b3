"""Define the items of tools that the service itself runs, and other items without streamed text: default values and progress
events.

Sources: the event types of the openai package (vendored under data/openai-*) and the API reference, "Streaming events". The
progress of an item is the sequence of events between `output_item.added` and `output_item.done`. `KINDS` has all the rules; the
keys that a script may give are in `codex_replay.protocol.script.keys`."""

from __future__ import annotations

from codex_replay.core.value import EMPTY, Value
from codex_replay.core.wire.json_text import compact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    #: The fields of an event after its type; and how a text is split into deltas.
    Event = tuple[str, dict[str, Any]]
    Split = Callable[[Mapping[str, Any], str], list[str]]

#: The smallest PNG: one transparent pixel.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


class Kind(Value):
    """One kind of output item: the prefix of its id, the default value of each key, and its progress events.

    `begun` has the values of keys that change when the item is complete. `progress` has the progress events in order. In
    `progress`, `"X"` stands for the event `response.KIND.X`. In `progress`, a pair (event name without its ending, key)
    stands for a streamed text. In `progress`, a function makes its own events. `call` is True if the item has a `call_id`.
    `statuses` are the values that the item's `status` may have at the end; the first one is the default.
    """

    prefix: str
    defaults: Mapping[str, Any] = EMPTY
    begun: Mapping[str, Any] = EMPTY
    progress: tuple[Any, ...] = ()
    call: bool = False
    statuses: tuple[str, ...] = ("completed", "incomplete")


def _images(item: Mapping[str, Any], split: Split, given: Mapping[str, Any]) -> Iterator[Event]:
    for number, image in enumerate(given.get("partial_images", ())):
        yield "response.image_generation_call.partial_image", {"partial_image_index": number, "partial_image_b64": image}


def _commands(item: Mapping[str, Any], split: Split, given: Mapping[str, Any]) -> Iterator[Event]:
    for number, command in enumerate(item["action"]["commands"]):
        at = {"command_index": number}
        yield "response.shell_call_command.added", {**at, "command": ""}
        for piece in split({}, command):
            yield "response.shell_call_command.delta", {**at, "delta": piece}
        yield "response.shell_call_command.done", {**at, "command": command}


def _outputs(item: Mapping[str, Any], split: Split, given: Mapping[str, Any]) -> Iterator[Event]:
    for number, output in enumerate(item["output"]):
        at = {"command_index": number}
        for name in ("stdout", "stderr"):
            for piece in split({}, output[name]):
                yield "response.shell_call_output_content.delta", {**at, "delta": {name: piece}}
        yield "response.shell_call_output_content.done", {**at, "output": [output]}


_FAILS = ("completed", "failed", "incomplete")
_OUTPUT = {"stdout": "", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
#: "end" in a progress is the item's final status, if there is an event for it.
KINDS: dict[str, Kind] = {
    "file_search_call": Kind(
        "fs",
        {"queries": [], "results": None},
        {"queries": [], "results": None},
        ("in_progress", "searching", "completed"),
        False,
        _FAILS,
    ),
    "code_interpreter_call": Kind(
        "ci",
        {"code": "", "container_id": "cntr_1", "outputs": None},
        {"code": "", "outputs": None},
        ("in_progress", ("response.code_interpreter_call_code", "code"), "interpreting", "completed"),
        False,
        _FAILS,
    ),
    "image_generation_call": Kind(
        "ig",
        {"result": PIXEL},
        {"result": None},
        ("in_progress", "generating", _images, "completed"),
        False,
        ("completed", "failed"),
    ),
    # Without an error it has none, as in the guide on MCP: the AI SDK takes no null there.
    "mcp_list_tools": Kind("mcpl", {"server_label": "server", "tools": []}, {"tools": []}, ("in_progress", "end"), False, ()),
    "mcp_call": Kind(
        "mcp",
        {"server_label": "server", "arguments": "{}", "output": None, "error": None, "approval_request_id": None},
        {"arguments": "", "output": None, "error": None},
        ("in_progress", ("response.mcp_call_arguments", "arguments"), "end"),
        False,
        _FAILS,
    ),
    "mcp_approval_request": Kind("mcpr", {"server_label": "server", "arguments": "{}"}, EMPTY, (), False, ()),
    "computer_call": Kind("cu", {"action": {"type": "screenshot"}, "pending_safety_checks": []}, EMPTY, (), True),
    "local_shell_call": Kind("lsh", {"action": {}}, EMPTY, (), True),
    "shell_call": Kind("sh", {"action": {}, "environment": None}, {"action": {"commands": []}}, (_commands,), True),
    "shell_call_output": Kind("sho", {"output": [], "max_output_length": None}, {"output": []}, (_outputs,), True),
    "apply_patch_call": Kind("apc", EMPTY, EMPTY, (), True, ("completed",)),
    "compaction": Kind("cmp", {}, {"encrypted_content": ""}, ("compacting",), False, ()),
}
#: Kind -> key -> what an incomplete value of it gets.
_NESTED: dict[str, dict[str, Callable[[Any], Any]]] = {
    "local_shell_call": {"action": lambda given: {"type": "exec", "command": [], "env": {}, **given}},
    "shell_call": {"action": lambda given: {"commands": [], "max_output_length": None, "timeout_ms": None, **given}},
    "shell_call_output": {"output": lambda given: [{**_OUTPUT, **one} for one in given]},
    "mcp_list_tools": {"tools": lambda given: [{"input_schema": {"type": "object"}, **one} for one in given]},
}
#: Events that name their item by its `output_index` alone (types of the package).
WITHOUT_ID = "response.shell_call_command."
#: Keys of a script's item that are no keys of the item that is sent.
_OWN = ("type", "id", "status", "deltas", "partial_images")


def finished(item: Mapping[str, Any], id_: str, call_id: str) -> dict[str, Any]:
    """Return the finished item for the event `output_item.done`, made from an item of a script."""
    kind = KINDS[item["type"]]
    made: dict[str, Any] = {"id": id_, "type": item["type"]}
    if kind.statuses:
        made["status"] = item.get("status", kind.statuses[0])
    made |= kind.defaults
    if kind.call:
        made["call_id"] = call_id
    made |= {key: value for key, value in item.items() if key not in _OWN}
    if "actions" in item:
        del made["action"]
    if item["type"] == "compaction":
        made.setdefault("encrypted_content", f"encrypted_{id_}")
    if isinstance(made.get("arguments"), dict):
        made["arguments"] = compact(made["arguments"])
    for key, complete in _NESTED.get(item["type"], {}).items():
        made[key] = complete(made[key])
    return made


def begun(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the initial form of a finished item, for the event `output_item.added`."""
    kind = KINDS[item["type"]]
    status = {"status": "in_progress"} if kind.statuses else {}
    return {**item, **status, **kind.begun}


def progress(item: Mapping[str, Any], given: Mapping[str, Any], split: Split) -> Iterator[Event]:
    """Yield the events between the start and the end of an output item.

    `given` is the item in the script, and `split` cuts a text into deltas.

    A failed item has the event `failed` (if there is such an event for its kind), and no event `completed`.
    """
    kind = KINDS[item["type"]]
    failed = given.get("status") == "failed" or (not kind.statuses and item.get("error") is not None)
    for step in kind.progress:
        if step == "completed" and item.get("status") != "completed":
            continue
        if step == "end":
            yield f"response.{item['type']}.{'failed' if failed else 'completed'}", {}
        elif isinstance(step, str):
            yield f"response.{item['type']}.{step}", {}
        elif isinstance(step, tuple):
            yield from _streamed(step[0], step[1], item[step[1]] or "", split(given, item[step[1]] or ""))
        else:
            yield from step(item, split, given)


def _streamed(event: str, key: str, whole: str, pieces: Iterable[str]) -> Iterator[Event]:
    for piece in pieces:
        yield f"{event}.delta", {"delta": piece}
    yield f"{event}.done", {key: whole}


def audio(item: Mapping[str, Any], split: Split) -> Iterator[Event]:
    """Yield the events of an audio: its data (base64), then its transcript.

    The events of an audio belong to no item (see the types of the package openai).
    """
    if data := item.get("data", ""):
        yield "response.audio.delta", {"delta": data}
    yield "response.audio.done", {}
    transcript = item.get("transcript", "")
    yield from (("response.audio.transcript.delta", {"delta": piece}) for piece in split(item, transcript))
    yield "response.audio.transcript.done", {}
