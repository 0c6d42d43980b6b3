"""Write the developer instructions, which explain to the model how to call the client's tools (PAY-34 to PAY-54).

The specification fixes the constant lines of the instructions, character by character. The list of tools, the parameters
and the examples are generated from the schemas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from codex_replay.reference.proxy.asking.examples import example_for_schema
from codex_replay.reference.proxy.asking.parameters import summarize_schema_parameters
from codex_replay.reference.proxy.asking.tools import Tools, schema_of
from codex_replay.reference.proxy.wire.json_text import text

RULES = r"""Tool calling instructions:
Only emit tool calls using <tool_call>...</tool_call>.
Format: <tool_call>{"name":"TOOL_NAME","arguments":"{...}"}</tool_call>
Inside <tool_call>...</tool_call>, output ONLY a JSON object with keys "name" and "arguments".
Always emit <tool_call> blocks exactly as shown; the client executes them.
Do NOT call internal tools directly (shell, apply_patch, web_search, view_image); only emit <tool_call>.
Read-only sandbox or approval restrictions do NOT prevent emitting <tool_call> output.
Use EXACT parameter names from the schema; do NOT invent or rename keys.
Do not add any extra characters before or after the JSON (no trailing ">", no code fences).
Use exactly one opening <tool_call> and one closing </tool_call> tag.
Output must be valid JSON. Do not add extra braces or trailing characters.
Do NOT wrap the JSON object in an array (no leading "[" or trailing "]").
Bad: <tool_call>[{"name":"tool","arguments":"{...}"}]</tool_call>
Never repeat the closing tag.
Example (exact): <tool_call>{"name":"webSearch","arguments":"{\"query\":\"example\",\"chatHistory\":[]}"}</tool_call>
The "arguments" field must be a JSON string.
If a tool has no parameters, use arguments "{}".
If no tool is needed, respond with plain text."""


def tool_instructions(tools: Tools) -> str:
    """Return the complete instructions for the given tools, or "" if there are no tools."""
    if not tools.definitions:
        return ""
    schemas = [f"- {function['name']}: {text(schema_of(function))}" for function in tools.functions]
    sections = [
        RULES,
        "\n".join(choice_lines(tools)),
        "\n".join(["Available tools (schema):", *schemas]),
        "Per-tool guidance and examples (schema-conformant):\n" + "\n\n".join(map(_guidance, tools.functions)),
    ]
    return "\n\n".join(section for section in sections if section)


def choice_lines(tools: Tools) -> list[str]:
    """Return the lines for requests with a tool choice or with strict tools."""
    lines = []
    if tools.choice == "none":
        lines.append("Tool choice is none: never emit <tool_call>.")
    elif tools.choice == "required":
        lines.append("Tool choice is required: you MUST emit at least one <tool_call>.")
    elif tools.choice == "forced":
        lines.append(f'Tool choice is forced: you MUST call "{tools.forced}".')
    if tools.strict:
        lines.append(f"Strict tools: {', '.join(tools.strict)}. Arguments MUST conform exactly to schema.")
    return lines


def native_choice(tools: Tools) -> list[str]:
    """Return the lines about the tool choice for a model that gets the tools as native tools (profile `works-on-0.92`).

    The tool choice must be in the instructions, because Codex always sends the tool choice `auto` to the model.
    """
    if tools.definitions and tools.choice == "required":
        return ["You MUST call at least one of the client's tools."]
    return [f'You MUST call the tool "{tools.forced}".'] if tools.choice == "forced" else []


def json_rule(shape: Any) -> str:
    """Return the rule for a model whose answer must be JSON without a schema: Codex has no setting for `json_object`."""
    wanted = isinstance(shape, dict) and shape.get("type") == "json_object"
    return "Answer with one JSON object, and with no other text." if wanted else ""


def joined(parts: Iterable[str]) -> str | None:
    """Return the blocks of the instructions in order, separated by blank lines, or None if there are no blocks."""
    return "\n\n".join(part for part in parts if part.strip()) or None


def example_call(name: str, schema: Any) -> str:
    """Return an example of a tool call that the model should imitate, with arguments that the schema allows."""
    return call_markup(name, text(example_for_schema(schema)))


def call_markup(name: str, arguments: str) -> str:
    """Return a tool call in the markup that the instructions demand from the model.

    Answers in the mode obsidian-xml use the same markup.
    """
    return "<tool_call>" + text({"name": name, "arguments": arguments}) + "</tool_call>"


def _guidance(function: dict[str, Any]) -> str:
    schema = schema_of(function)
    lines = [f"Tool: {function['name']}"]
    if function.get("description"):
        lines.append(f"Description: {function['description']}")
    lines.append("Parameters:")
    lines.extend(f"- {line}" for line in summarize_schema_parameters(schema))
    lines += ["Example tool_call:", example_call(function["name"], schema)]
    return "\n".join(lines)
