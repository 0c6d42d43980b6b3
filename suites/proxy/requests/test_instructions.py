"""The developer instructions. Source: docs/contract/payloads.md, Full developer instructions (Obsidian tool-call requests).

The fixed lines are compared to the document's own text to the character. What it leaves to summarizeSchemaParameters() and
exampleForSchema() is judged by properties: schemas verbatim, every parameter named, every example a call that satisfies
its schema.
"""

from __future__ import annotations

import json
import re
from itertools import zip_longest
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.expected import AS_SPECIFIED, ENDPOINTS, NO_TOOLS, NOTE, TREE, tool
from suites.proxy.instructions import FIXED, FORCED, NONE, REQUIRED, STRICT, Instructions, laid_out, sent, take_apart
from suites.proxy.saying import must_be, must_be_same, must_be_unset, must_have, only
from suites.proxy.schemas import SCHEMAS

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

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
    """Hold the schema that is listed behind a tool's name to the one that was given, key order and letters included."""
    where = f"The schema that is listed behind {name!r}"
    must_be_same(where, decoded(where, text), schema)
    escaped = [letter for letter in json.dumps(schema, ensure_ascii=False) if not letter.isascii() and letter not in text]
    must_be(f"The letters of the schema of {name!r} that are listed as escapes ({text!r})", escaped, [])


def parts(proxy: Proxy, endpoint: str, *tools: Any, **more: Any) -> Instructions:
    """As `instructions`, taken apart."""
    return take_apart(instructions(proxy, endpoint, *tools, **more))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("number", range(len(LINES)), ids=lambda number: f"line-{number + 1}")
@pytest.mark.spec("instructions-line", "PAY-34")
def test_fixed_line(proxy: Proxy, endpoint: str, number: int) -> None:
    """Each fixed line, to the character, in its place."""
    lines = instructions(proxy, endpoint).split("\n")
    must_be(f"Line {number + 1} of newConversation.developerInstructions", lines[number : number + 1], [LINES[number]])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-fixed", "PAY-34", "PAY-39")
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


def chosen(endpoint: str, choice: Any) -> dict[str, Any]:
    """The tool choice as a client of that endpoint writes it; None is none."""
    if isinstance(choice, dict):
        choice = {"type": "function", "function": choice} if endpoint == "chat" else {"type": "function", **choice}
    return {} if choice is None else {"tool_choice": choice}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize(("choice", "wanted"), CHOICES)
@pytest.mark.spec("instructions-choice", "PAY-35", "PAY-36")
def test_tool_choice(proxy: Proxy, endpoint: str, choice: Any, wanted: list[str]) -> None:
    """One line for a choice, to the character, between the fixed lines and the schemas; none without one."""
    found = parts(proxy, endpoint, tool(endpoint), tool(endpoint, "saveNote", NOTE), **chosen(endpoint, choice))
    must_be("The lines between the fixed lines and the schemas", found.conditional, wanted)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-strict", "PAY-37")
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
@pytest.mark.spec("instructions-choice-then-strict", "PAY-38")
def test_choice_stands_before_strict(proxy: Proxy, endpoint: str) -> None:
    """Both lines come when both hold, the choice first."""
    found = parts(proxy, endpoint, tool(endpoint, "one", strict=True), tool_choice="required")
    must_be(
        "The lines between the fixed lines and the schemas", found.conditional, [REQUIRED, STRICT.replace("toolA, toolB", "one")]
    )


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-schemas", "PAY-31", "PAY-40", "PAY-41")
def test_schemas(proxy: Proxy, endpoint: str) -> None:
    """A line a tool, in the order of the request: its name and its schema, keys in order, nothing added or cut."""
    found = parts(proxy, endpoint, tool(endpoint), tool(endpoint, "saveNote", NOTE)).schemas
    must_be("The names of the listed schemas", [name for name, _ in found], ["getFileTree", "saveNote"])
    for (name, text), schema in zip(found, (TREE, NOTE), strict=True):
        must_be_schema(name, text, schema)


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-schema-verbatim", "PAY-41")
def test_schema_of_every_kind(proxy: Proxy, endpoint: str, kind: str) -> None:
    """Whatever a schema says, it is there as it was given."""
    name, text = only("line below the heading of the schemas", parts(proxy, endpoint, tool(endpoint, "t", SCHEMAS[kind])).schemas)
    must_be("The name before the listed schema", name, "t")
    must_be_schema(name, text, SCHEMAS[kind])


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-example", "PAY-48")
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
@pytest.mark.spec("instructions-parameters", "PAY-46")
def test_parameters(proxy: Proxy, endpoint: str, kind: str) -> None:
    """Every parameter is named among the lines below "Parameters:"."""
    guidance = only("tool with guidance", parts(proxy, endpoint, tool(endpoint, "t", SCHEMAS[kind])).guidance)
    names = SCHEMAS[kind].get("properties", {})
    missing = [name for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", guidance.parameters)]
    must_be(f'The parameters that are not named below "Parameters:" ({guidance.parameters!r})', missing, [])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-guidance", "PAY-42", "PAY-43", "PAY-44", "PAY-45")
def test_guidance(proxy: Proxy, endpoint: str) -> None:
    """A block a tool, in the order of the request, with its description if it has one."""
    found = parts(proxy, endpoint, tool(endpoint), tool(endpoint, "saveNote", NOTE, None)).guidance
    must_be("The tools that have guidance", [each.name for each in found], ["getFileTree", "saveNote"])
    must_be("The descriptions in the guidance", [each.description for each in found], ["List files", None])


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-of-the-schema", "PAY-47", "PAY-49")
def test_guidance_follows_from_the_schema(proxy: Proxy, endpoint: str, kind: str) -> None:
    """Two tools of one schema have the same lines and the same example, and so has the first of them alone."""
    tools = [tool(endpoint, name, SCHEMAS[kind]) for name in ("first", "second")]
    alone = only("tool with guidance", parts(proxy, endpoint, tools[0]).guidance)
    for each in parts(proxy, endpoint, *tools).guidance:
        must_be(f"The parameters of {each.name}", each.parameters, alone.parameters)
        must_be(f"The example of {each.name}", each.example, alone.example.replace('"first"', f'"{each.name}"', 1))


LAYOUTS: list[Any] = [
    *(pytest.param(*each.values, False, id=each.id) for each in CHOICES),
    pytest.param("required", [REQUIRED], True, id="required-strict"),
]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize(("choice", "conditional", "strict"), LAYOUTS)
@pytest.mark.spec("instructions-layout", "PAY-39", "PAY-40", "PAY-42", "PAY-43", "PAY-45")
def test_layout(proxy: Proxy, endpoint: str, choice: Any, conditional: list[str], strict: bool) -> None:
    """The blank lines are where the document has them, and no line is there that it does not have."""
    tools = [tool(endpoint, strict=strict), tool(endpoint, "saveNote", NOTE, None)]
    text = instructions(proxy, endpoint, *tools, **chosen(endpoint, choice))
    found = take_apart(text)
    wanted_lines = [*conditional, *([STRICT.replace("toolA, toolB", "getFileTree")] if strict else [])]
    must_be("The conditional lines", found.conditional, wanted_lines)
    for number, (line, wanted) in enumerate(zip_longest(text.rstrip("\n").split("\n"), laid_out(found).split("\n")), 1):
        must_be(f"Line {number} of newConversation.developerInstructions", line, wanted)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-parameter-lines", "PAY-46")
def test_parameter_lines(proxy: Proxy, endpoint: str) -> None:
    """Each line below "Parameters:" begins with a dash and a blank."""
    for each in parts(proxy, endpoint, tool(endpoint), tool(endpoint, "saveNote", NOTE)).guidance:
        odd = [line for line in each.parameters.split("\n") if not line.startswith("- ")]
        must_be(f"The lines of the parameters of {each.name} that do not begin with '- '", odd, [])


@pytest.mark.spec("instructions-appended", "PAY-52")
def test_instructions_come_last(proxy: Proxy) -> None:
    """The client's instructions stand behind the last example, unchanged."""
    said = "Speak like\n\n\n  a  pirate.\t\nAlways."
    found = parts(proxy, "responses", tool("responses"), tool("responses", "saveNote", NOTE), instructions=said)
    must_be("The text behind the last example", found.after.strip("\n"), said)


@pytest.mark.spec("instructions-alone", "PAY-53", "HAND-24")
def test_instructions_without_tools(proxy: Proxy) -> None:
    """Without tools the client's instructions are all there is: no rule of a tool that does not exist."""
    text = sent(proxy.responses({"instructions": "Speak like a pirate."}).params("newConversation"))
    must_be("newConversation.developerInstructions", text.strip(), "Speak like a pirate.")


@pytest.mark.spec("instructions-system", "PAY-32", "HAND-19")
def test_system_items_are_appended(proxy: Proxy) -> None:
    """Behind the tool text, each of them once, in their order."""
    items = [
        {"role": "system", "content": "First rule."},
        {"role": "developer", "content": [{"type": "input_text", "text": rule} for rule in ("Second rule.", "Third rule.")]},
        {"role": "user", "content": proxy.prompt()},
    ]
    found = parts(proxy, "responses", tool("responses"), input=items)
    rules = ("First rule.", "Second rule.", "Third rule.")
    must_have("The text behind the last example", found.after, *rules)
    must_be("How often each rule stands there", [found.after.count(rule) for rule in rules], [1, 1, 1])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("choice", [each.values[0] for each in CHOICES], ids=[each.id for each in CHOICES])
@pytest.mark.spec("instructions-turn", "PAY-51")
def test_the_turn_has_the_same_text(proxy: Proxy, endpoint: str, choice: Any) -> None:
    """When the turn has developer instructions, they are those of newConversation."""
    tools = [tool(endpoint, strict=choice == "auto"), tool(endpoint, "saveNote", NOTE)]
    more = {"instructions": "Be kind."} if endpoint == "responses" else {}
    done = proxy.post(endpoint, {"tools": tools, **chosen(endpoint, choice), **more})
    if "developerInstructions" in done.params("sendUserTurn"):
        must_be("sendUserTurn.developerInstructions", sent(done.params("sendUserTurn")), sent(done.params("newConversation")))


@pytest.mark.parametrize("given", NO_TOOLS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-none", "PAY-50")
def test_no_tools_no_rules(proxy: Proxy, endpoint: str, given: str) -> None:
    """Without tools, instructions and system items there is nothing to say."""
    params = proxy.post(endpoint, NO_TOOLS[given]).params("newConversation")
    must_be_unset("newConversation", params, "developerInstructions")
