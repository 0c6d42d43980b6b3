"""The developer instructions. Source: app-server-payloads.md, Full developer instructions (Obsidian tool-call requests).

The fixed lines are compared to the document's own text to the character. What it leaves to summarizeSchemaParameters() and
exampleForSchema() is judged by properties: schemas verbatim, every parameter named, every example a call that satisfies
its schema.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness.plugin.proxy import Proxy
from suites.proxy.expected import AS_SPECIFIED, ENDPOINTS, HANDOFF, NOTE, SPEC, TREE, tool
from suites.proxy.instructions import FIXED, FORCED, NONE, REQUIRED, STRICT, Instructions, sent, take_apart
from suites.proxy.saying import must_be, must_be_same, must_have, must_lack, only
from suites.proxy.schemas import SCHEMAS

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

WHERE = f"{SPEC}, Full developer instructions"
LINES = FIXED.split("\n")


def instructions(proxy: Proxy, endpoint: str, *tools: Any, **more: Any) -> str:
    """Ask with these tools and return what newConversation was sent."""
    done = proxy.post(endpoint, {"tools": list(tools) or [tool(endpoint)], **more})
    return sent(done.params("newConversation"))


def decoded(where: str, text: str) -> Any:
    """Decode a JSON text; AssertionError when it is none."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise AssertionError(f"{where} must be JSON ({error}), but it is {text!r}") from None


def must_be_schema(name: str, text: str, schema: Any) -> None:
    """Hold the schema that is listed behind a tool's name to the one that was given, key order included."""
    where = f"The schema that is listed behind {name!r}"
    must_be_same(where, decoded(where, text), schema)


def parts(proxy: Proxy, endpoint: str, *tools: Any, **more: Any) -> Instructions:
    """As `instructions`, taken apart."""
    return take_apart(instructions(proxy, endpoint, *tools, **more))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("number", range(len(LINES)), ids=lambda number: f"line-{number + 1}")
@pytest.mark.spec("instructions-line", WHERE, "builds **exactly** the following developer instruction text")
def test_fixed_line(proxy: Proxy, endpoint: str, number: int) -> None:
    """Each fixed line, to the character, in its place."""
    lines = instructions(proxy, endpoint).split("\n")
    must_be(f"Line {number + 1} of newConversation.developerInstructions", lines[number : number + 1], [LINES[number]])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-fixed", WHERE, "builds **exactly** the following developer instruction text")
def test_fixed_block(proxy: Proxy, endpoint: str) -> None:
    """The fixed lines are the beginning of the text, and an empty line follows."""
    text = instructions(proxy, endpoint)
    assert text.startswith(FIXED + "\n\n"), (
        f"the fixed lines and an empty line must be the beginning of developerInstructions: {text[:2000]!r}"
    )


CHOICES: list[Any] = [
    pytest.param("auto", [], id="auto"),
    pytest.param(None, [], id="unset"),
    pytest.param("none", [NONE], id="none"),
    pytest.param("required", [REQUIRED], id="required"),
    pytest.param({"name": "saveNote"}, [FORCED.replace("TOOL_NAME", "saveNote")], id="forced"),
]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize(("choice", "wanted"), CHOICES)
@pytest.mark.spec("instructions-choice", WHERE, 'Tool choice is ... (only if tool_choice = "none", "required", or names a tool)')
def test_tool_choice(proxy: Proxy, endpoint: str, choice: Any, wanted: list[str]) -> None:
    """One line for a choice, to the character, between the fixed lines and the schemas; none without one."""
    if isinstance(choice, dict):
        choice = {"type": "function", "function": choice} if endpoint == "chat" else {"type": "function", **choice}
    more = {} if choice is None else {"tool_choice": choice}
    found = parts(proxy, endpoint, tool(endpoint), tool(endpoint, "saveNote", NOTE), **more)
    must_be("The lines between the fixed lines and the schemas", found.conditional, wanted)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-strict", WHERE, "Strict tools: toolA, toolB. ... (only if strict tools exist)")
def test_strict_tools(proxy: Proxy, endpoint: str) -> None:
    """The strict tools by name, in the order of the request; the others are not among them."""
    tools = [
        tool(endpoint, "one", strict=True),
        tool(endpoint, "two", NOTE, strict=False),
        tool(endpoint, "three", NOTE, strict=True),
    ]
    must_be(
        "The lines between the fixed lines and the schemas",
        parts(proxy, endpoint, *tools).conditional,
        [STRICT.replace("toolA, toolB", "one, three")],
    )


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-choice-then-strict", WHERE, "the order of the conditional lines")
def test_choice_stands_before_strict(proxy: Proxy, endpoint: str) -> None:
    """Both lines come when both hold, the choice first."""
    found = parts(proxy, endpoint, tool(endpoint, "one", strict=True), tool_choice="required")
    must_be(
        "The lines between the fixed lines and the schemas", found.conditional, [REQUIRED, STRICT.replace("toolA, toolB", "one")]
    )


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-schemas", WHERE, "- toolName: { ... full JSON schema ... }")
def test_schemas(proxy: Proxy, endpoint: str) -> None:
    """A line a tool, in the order of the request: its name and its schema, keys in order, nothing added or cut."""
    found = parts(proxy, endpoint, tool(endpoint), tool(endpoint, "saveNote", NOTE)).schemas
    must_be("The names of the listed schemas", [name for name, _ in found], ["getFileTree", "saveNote"])
    for (name, text), schema in zip(found, (TREE, NOTE), strict=True):
        must_be_schema(name, text, schema)


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-schema-verbatim", WHERE, "The schema is included verbatim")
def test_schema_of_every_kind(proxy: Proxy, endpoint: str, kind: str) -> None:
    """Whatever a schema says, it stands there as it was given."""
    name, text = only("line below the heading of the schemas", parts(proxy, endpoint, tool(endpoint, "t", SCHEMAS[kind])).schemas)
    must_be("The name before the listed schema", name, "t")
    must_be_schema(name, text, SCHEMAS[kind])


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-example", WHERE, "Per-tool guidance and examples (schema-conformant)")
def test_example(proxy: Proxy, endpoint: str, kind: str) -> None:
    """The example is one call in the very form that the fixed lines ask for, and its arguments satisfy the schema."""
    guidance = only("tool with guidance", parts(proxy, endpoint, tool(endpoint, "t", SCHEMAS[kind])).guidance)
    example = guidance.example
    assert example.startswith("<tool_call>{"), f"the example must begin with <tool_call>{{: {example!r}"
    assert example.endswith("}</tool_call>"), f"the example must end with }}</tool_call>: {example!r}"
    call = decoded("The object of the example", guidance.example.removeprefix("<tool_call>").removesuffix("</tool_call>"))
    must_be("The keys of the example's object, in their order,", list(call), ["name", "arguments"])
    must_be("name of the example", call["name"], "t")
    assert isinstance(call["arguments"], str), f"arguments of the example must be a JSON string, not {call['arguments']!r}"
    arguments = decoded("arguments of the example", call["arguments"])
    errors = [error.message for error in Draft202012Validator(SCHEMAS[kind]).iter_errors(arguments)]
    assert errors == [], f"the example's arguments {arguments} do not satisfy the schema"


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-parameters", WHERE, "- <lines produced by summarizeSchemaParameters(...)>")
def test_parameters(proxy: Proxy, endpoint: str, kind: str) -> None:
    """Every parameter is named among the lines below "Parameters:"."""
    guidance = only("tool with guidance", parts(proxy, endpoint, tool(endpoint, "t", SCHEMAS[kind])).guidance)
    names = SCHEMAS[kind].get("properties", {})
    missing = [name for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", guidance.parameters)]
    must_be(f'The parameters that are not named below "Parameters:" ({guidance.parameters!r})', missing, [])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-guidance", WHERE, "Tool: toolName / Description: tool description (if present)")
def test_guidance(proxy: Proxy, endpoint: str) -> None:
    """A block a tool, in the order of the request, with its description if it has one."""
    found = parts(proxy, endpoint, tool(endpoint), tool(endpoint, "saveNote", NOTE, None)).guidance
    must_be("The tools that have guidance", [each.name for each in found], ["getFileTree", "saveNote"])
    must_be("The descriptions in the guidance", [each.description for each in found], ["List files", None])


@pytest.mark.spec(
    "instructions-appended",
    f"{WHERE}, Notes",
    "appended as an additional developer instruction block after the tool injection text",
)
def test_instructions_come_last(proxy: Proxy) -> None:
    """The client's instructions stand behind the last example, unchanged."""
    found = parts(
        proxy, "responses", tool("responses"), tool("responses", "saveNote", NOTE), instructions="Speak like\na pirate."
    )
    must_be("The text behind the last example", found.after.strip("\n"), "Speak like\na pirate.")


@pytest.mark.spec("instructions-alone", f"{HANDOFF}, Mapping overview", "`instructions` ... | `developerInstructions`")
def test_instructions_without_tools(proxy: Proxy) -> None:
    """Without tools the client's instructions are all there is: no rule of a tool that does not exist."""
    text = sent(proxy.responses({"instructions": "Speak like a pirate."}).params("newConversation"))
    must_be("newConversation.developerInstructions", text.strip(), "Speak like a pirate.")


@pytest.mark.spec(
    "instructions-system",
    f"{SPEC}, 1) newConversation, Notes",
    "items with role `system` or `developer` are appended into `developerInstructions`",
)
def test_system_items_are_appended(proxy: Proxy) -> None:
    """Behind the tool text, each of them once, in their order."""
    items = [
        {"role": "system", "content": "First rule."},
        {"role": "developer", "content": [{"type": "input_text", "text": "Second rule."}]},
        {"role": "user", "content": proxy.prompt()},
    ]
    found = parts(proxy, "responses", tool("responses"), input=items)
    must_have("The text behind the last example", found.after, "First rule.", "Second rule.")
    must_be("How often each rule stands there", (found.after.count("First rule."), found.after.count("Second rule.")), (1, 1))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-turn", WHERE, "and, when present, `sendUserTurn.developerInstructions`")
def test_the_turn_has_the_same_text(proxy: Proxy, endpoint: str) -> None:
    """When the turn has developer instructions, they are those of newConversation."""
    done = proxy.post(endpoint, {"tools": [tool(endpoint)]})
    if "developerInstructions" in done.params("sendUserTurn"):
        must_be("sendUserTurn.developerInstructions", sent(done.params("sendUserTurn")), sent(done.params("newConversation")))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-none", WHERE, "When function tools are provided")
def test_no_tools_no_rules(proxy: Proxy, endpoint: str) -> None:
    """Without tools nothing is said of tool calls."""
    told = str(proxy.post(endpoint).params("newConversation").get("developerInstructions"))
    must_lack("newConversation.developerInstructions", told, "<tool_call>")
