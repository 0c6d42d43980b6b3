"""Compare a request to the model with expectations.

A script has the same keys for choosing a turn (`match`) and for checking a request (`expect`).

The code here is pure: it takes plain values and returns a sentence.

The keys of an expectation:

    {"prompt": "marker" | ["a", "b"],        each is in some text of the request's input
     "model": "gpt-5.2-codex",
     "body": {...},                          a part of the body: named keys must be equal, other keys are free
     "absent": ["previous_response_id"],     keys that the body must not have
     "headers": {"originator": "x", "y": null},   by name in any case; null: must not be there
     "outputs": {"call_1": "5"},             the outputs of calls in the input, by call id; their wall time is not compared
     "user": "marker",                       is in the last message of the user
     "pattern": "add (\\d+)",                 a regular expression, found in the last message of the user
     "tool_pattern": "session ID (\\d+)",    the same, found in the output of a call: in the latest one that has it
     "tool": "marker",                       is in the output of a call that follows the last message of the user
     "instructions": "marker",               is in the instructions, or in a message of the system or the developer
     "turn": 2,                              the number of the reply in its conversation, from 1
     "repeated": false}                      whether the model has already answered the same message of the user
"""

from __future__ import annotations

from codex_replay.protocol.script.hints import near

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

SHOWN = 80  # characters of a value
KEYS = (
    *("prompt", "model", "body", "absent", "headers", "outputs"),
    *("user", "pattern", "tool_pattern", "tool", "instructions", "turn", "repeated"),
)


def vocabulary_error(wanted: Mapping[str, Any]) -> str | None:
    """Return a sentence about a fault in the expectation itself, or None if the expectation is valid."""
    for key in wanted:
        if key not in KEYS:
            return f'"{key}" is not a key of an expectation{near(key, KEYS)}. The allowed keys are {", ".join(KEYS)}.'
    for key, kind, meaning in (
        ("prompt", (str, list), "a string or a list of strings"),
        ("model", (str,), "a string"),
        ("body", (dict,), "an object"),
        ("absent", (list,), "a list of keys"),
        ("headers", (dict,), "an object"),
        ("outputs", (dict,), "an object"),
        ("user", (str,), "a string"),
        ("pattern", (str,), "a regular expression (string)"),
        ("tool_pattern", (str,), "a regular expression (string)"),
        ("tool", (str,), "a string"),
        ("instructions", (str,), "a string"),
        ("turn", (int,), "a whole number, 1 or more"),
        ("repeated", (bool,), "true or false"),
    ):
        if key in wanted and (not isinstance(wanted[key], kind) or (key == "turn" and not 1 <= wanted[key] is not True)):
            return f'"{key}" must be {meaning}.'
    if "pattern" in wanted and "tool_pattern" in wanted:
        return '"pattern" and "tool_pattern" cannot be used together, because both name the groups of the items.'
    if (pattern := pattern_of(wanted)) is not None:
        import re  # only for a pattern: it would cost every start of a script

        try:
            re.compile(pattern)
        except re.error as error:
            return f'"{"pattern" if "pattern" in wanted else "tool_pattern"}" is not a regular expression: {error}.'
    return None


def pattern_of(wanted: Mapping[str, Any]) -> str | None:
    """Return the regular expression of an expectation, or None. The items of the turn may contain what its groups captured."""
    pattern: str | None = wanted.get("pattern", wanted.get("tool_pattern"))
    return pattern


def mismatch(
    wanted: Mapping[str, Any],
    body: Mapping[str, Any],
    headers: Sequence[tuple[str, str]] | None,
    texts: Sequence[str] | None = None,
    earlier: Sequence[Mapping[str, Any]] = (),
) -> str | None:
    """Compare a request with an expectation. Return None if the request matches, otherwise a sentence about the difference.

    If `headers` is None, expectations about headers are skipped. `texts` is `list(input_texts(body))`; a caller that
    compares one request with many expectations computes it only once. `earlier` has the earlier items of the conversation,
    if the request names them only by an id. Expectations about the conversation also apply to the items in `earlier`.
    """
    for marker in markers_of(wanted):
        texts = list(input_texts(body)) if texts is None else texts
        if not any(marker in text for text in texts):
            return f'No text of the input contains "{marker}".'
    if "model" in wanted and body.get("model") != wanted["model"]:
        return f"model is {body.get('model')!r}, expected {wanted['model']!r}."
    for key in wanted.get("absent", ()):
        if key in body:
            return f'The body has "{key}", which was expected to be absent.'
    if "body" in wanted and (found := difference(wanted["body"], body)):
        return found
    if headers is not None and (found := _headers(wanted.get("headers", {}), headers)):
        return found
    return _outputs(wanted.get("outputs", {}), body) or _conversation(wanted, continued(body, earlier))


def continued(body: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the body in the form that it has if the client repeats the whole conversation."""
    return {**body, "input": [*earlier, *input_items(body)]} if earlier else body


def _conversation(wanted: Mapping[str, Any], body: Mapping[str, Any]) -> str | None:
    """Compare four things with the expectation: the user's last message, the items after this message, the instructions, and the
    number of the turn.
    """
    if "user" in wanted and wanted["user"] not in last_user(body):
        return f'The last message of the user does not contain "{wanted["user"]}".'
    if "pattern" in wanted and captured(wanted, body) is None:
        return f"The last message of the user does not match the pattern {wanted['pattern']!r}."
    if "tool_pattern" in wanted and captured(wanted, body) is None:
        return f"No output of a tool matches the pattern {wanted['tool_pattern']!r}."
    if "tool" in wanted and not any(wanted["tool"] in text for text in outputs(body, whole=False)):
        return f'No output of a tool after the last message of the user contains "{wanted["tool"]}".'
    if "instructions" in wanted and not any(wanted["instructions"] in text for text in instructions(body)):
        return f'The instructions do not contain "{wanted["instructions"]}".'
    if "turn" in wanted and (number := turn_number(body)) != wanted["turn"]:
        return f"This request asks for turn {number} of its conversation, expected turn {wanted['turn']}."
    if "repeated" in wanted and is_repeated(body) != wanted["repeated"]:
        known = "has not answered" if wanted["repeated"] else "has already answered"
        return f"The model {known} the last message of the user in this conversation."
    return None


def instructions(body: Mapping[str, Any]) -> list[str]:
    """Return the texts with instructions for the model: the member `instructions`, and the messages of the system and the
    developer.
    """
    given = body.get("instructions")
    messages = [item for item in input_items(body) if item.get("role") in ("system", "developer")]
    return [given if isinstance(given, str) else "", *(text for item in messages for text in message_texts(item))]


def captured(wanted: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, str] | None:
    """Search the pattern in the last message of the user, or in the outputs of tools, the latest first.

    Return the groups of the pattern by name and by number, or None if the pattern does not match.
    """
    import re  # only for a pattern: it would cost every start of a script

    texts = [last_user(body)] if "pattern" in wanted else reversed(outputs(body))
    found = next((match for text in texts if (match := re.search(str(pattern_of(wanted)), text))), None)
    if found is None:
        return None
    numbered = {str(i): text or "" for i, text in enumerate((found[0], *found.groups()))}
    return numbered | {name: text or "" for name, text in found.groupdict().items()}


def last_user(body: Mapping[str, Any]) -> str:
    """Return the text of the user's last message; "" if the request has no message of the user."""
    for item in reversed(input_items(body)):
        if item.get("role") == "user":
            return "\n".join(message_texts(item))
    return ""


def outputs(body: Mapping[str, Any], whole: bool = True) -> list[str]:
    """Return the tool outputs as texts, in order: those of the `whole` conversation, or after the user's last message."""
    found: list[str] = []
    for item in input_items(body):
        if item.get("role") == "user" and not whole:
            found.clear()
        elif "output" in item:
            output = item["output"]
            parts = message_texts({"content": output})
            found.append(output if isinstance(output, str) else "\n".join(parts))
    return found


#: Items of a model that are neither messages nor calls.
_OF_MODEL = ("reasoning", "mcp_list_tools", "mcp_approval_request")


def turn_number(body: Mapping[str, Any]) -> int:
    """Return the number of the reply that a request asks for: the number of earlier replies in the request's input, plus one.

    Everything that the model sent between two messages or tool outputs of the client counts as one reply.
    """
    number, inside = 1, False
    for item in input_items(body):
        of_model = _of_model(item)
        number += of_model and not inside
        inside = of_model
    return number


def is_repeated(body: Mapping[str, Any]) -> bool:
    """Return True if the user's last message has the text of an earlier message of the user, and a reply stands between them."""
    last, asked, answered, repeated = last_user(body), False, False, False
    for item in input_items(body):
        if item.get("role") == "user":
            same = "\n".join(message_texts(item)) == last
            repeated = same and answered
            asked = asked or same
        elif asked and _of_model(item):
            answered = True
    return repeated


def _of_model(item: Mapping[str, Any]) -> bool:
    """Return True if the model sent the item in an earlier reply."""
    kind = str(item.get("type", "message"))
    return item.get("role") == "assistant" or kind in _OF_MODEL or kind.endswith("_call")


def markers_of(wanted: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the markers that an expectation searches in the texts of the input."""
    prompts = wanted.get("prompt", ())
    return (prompts,) if isinstance(prompts, str) else tuple(prompts)


def _headers(wanted: Mapping[str, str | None], headers: Sequence[tuple[str, str]]) -> str | None:
    for name, value in wanted.items():
        seen = [text for key, text in headers if key.lower() == name.lower()]
        if value is None and seen:
            return f"The header {name} was expected to be absent, but is {seen[0]!r}."
        if value is not None and value not in seen:
            return f"The header {name} is {seen[0]!r}, expected {value!r}." if seen else f"The header {name} is missing."
    return None


def _outputs(wanted: Mapping[str, Any], body: Mapping[str, Any]) -> str | None:
    if not wanted:
        return None
    seen = {item.get("call_id"): item.get("output") for item in input_items(body) if "output" in item}
    for call_id, output in wanted.items():
        if call_id not in seen:
            return f"The input has no output for the call {call_id}."
        if _timeless(seen[call_id]) != _timeless(output):
            return f"The output of the call {call_id} is {seen[call_id]!r}, expected {output!r}."
    return None


def _timeless(output: Any) -> Any:
    """Return the output of a command without the line with the wall time that Codex adds, because the time depends on the load of
    the machine.
    """
    if type(output) is not str or "Wall time: " not in output:
        return output
    import re  # few outputs have it: it would slow every start

    return re.sub(r"^Wall time: [0-9.]+ seconds$", "Wall time:", output, count=1, flags=re.MULTILINE)


def input_items(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the items of the request's `input`; a string stands for one user message."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []


def message_texts(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of one message item; its content is a string or a list of parts."""
    content = item.get("content")
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                yield part["text"]


def input_texts(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield every text of the messages in the input, in which markers are searched."""
    for item in input_items(body):
        if "content" in item:
            yield from message_texts(item)


def difference(wanted: object, seen: object, where: str = "body") -> str | None:
    """Check that a value of the request contains the expected part; return a sentence about the difference.

    An object must have the keys of the expected object, a list must have the same length and equal items, and other values
    must be equal.
    """
    if isinstance(wanted, dict) and isinstance(seen, dict):
        for key, value in wanted.items():
            if key not in seen:
                return f"{where}.{key} is missing."
            if found := difference(value, seen[key], f"{where}.{key}"):
                return found
        return None
    if isinstance(wanted, list) and isinstance(seen, list):
        if len(wanted) != len(seen):
            return f"{where} has {len(seen)} entries, expected {len(wanted)}."
        pairs = enumerate(zip(wanted, seen, strict=True))
        return next((found for i, (a, b) in pairs if (found := difference(a, b, f"{where}[{i}]"))), None)
    same = wanted == seen and isinstance(wanted, bool) == isinstance(seen, bool)
    return None if same else f"{where} is {_short(seen)}, expected {_short(wanted)}."


def _short(value: object) -> str:
    from codex_replay.core.text.truncate import truncate  # only for a mistake: it would cost every start of a script

    return truncate(repr(value), SHOWN)
