"""The developer instructions. Source: docs/contract/payloads.md, Full developer instructions (Obsidian tool-call requests).

The cases compare the fixed lines exactly with the document's text. The document does not show the output of
summarizeSchemaParameters() and exampleForSchema(). For the output of these two functions, the cases check only that schemas
are unchanged, that every parameter is named, and that every example is a call that is valid for its schema.
"""

from __future__ import annotations

import json
import re
from itertools import zip_longest
from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.expected import AS_SPECIFIED, ENDPOINTS, NO_TOOLS, NOTE, TREE, tool
from suites.proxy.instructions import FIXED, FORCED, NONE, REQUIRED, STRICT, Instructions, laid_out, sent, take_apart
from suites.proxy.saying import must_be, must_be_same, must_be_unset, must_have, only
from suites.proxy.schemas import SCHEMAS

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

LINES = FIXED.split("\n")


def instructions(proxy: Proxy, endpoint: str, *tools: Any, **more: Any) -> str:
    """Send a request with the given tools, and return the developer instructions of newConversation."""
    done = proxy.post(endpoint, {"tools": list(tools) or [tool(endpoint)], **more})
    return sent(done.params("newConversation"))


def decoded(where: str, text: str) -> Any:
    """Decode a JSON text; raises AssertionError if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise AssertionError(f"{where} must be JSON ({error}), but it is {text!r}") from None


def must_be_schema(name: str, text: str, schema: Any) -> None:
    """Check that the schema after a tool's name equals the given schema, including the order of keys and the characters."""
    where = f"The schema after {name!r}"
    must_be_same(where, decoded(where, text), schema)
    escaped = [letter for letter in json.dumps(schema, ensure_ascii=False) if not letter.isascii() and letter not in text]
    must_be(f"The characters of the schema of {name!r} that are escaped ({text!r})", escaped, [])


def parts(proxy: Proxy, endpoint: str, *tools: Any, **more: Any) -> Instructions:
    """Return the parts of the developer instructions in `instructions`."""
    return take_apart(instructions(proxy, endpoint, *tools, **more))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("number", range(len(LINES)), ids=lambda number: f"line-{number + 1}")
@pytest.mark.spec("instructions-line", "PAY-34")
def test_fixed_line(proxy: Proxy, endpoint: str, number: int) -> None:
    """The instructions have each fixed line exactly and at its place."""
    lines = instructions(proxy, endpoint).split("\n")
    must_be(f"Line {number + 1} of newConversation.developerInstructions", lines[number : number + 1], [LINES[number]])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-fixed", "PAY-34", "PAY-39")
def test_fixed_block(proxy: Proxy, endpoint: str) -> None:
    """The developer instructions begin with the fixed lines and an empty line."""
    text = instructions(proxy, endpoint)
    assert text.startswith(FIXED + "\n\n"), (
        f"developerInstructions must begin with the fixed lines and an empty line: {text[:2000]!r}"
    )


CHOICES: list[Any] = [
    pytest.param("auto", [], id="auto"),
    pytest.param(None, [], id="unset"),
    pytest.param("none", [NONE], id="none"),
    pytest.param("required", [REQUIRED], id="required"),
    pytest.param({"name": "saveNote"}, [FORCED.replace("TOOL_NAME", "saveNote")], id="forced"),
]


def chosen(endpoint: str, choice: Any) -> dict[str, Any]:
    """Return the tool choice of a request in the form that an endpoint requires; return None for no choice."""
    if isinstance(choice, dict):
        choice = {"type": "function", "function": choice} if endpoint == "chat" else {"type": "function", **choice}
    return {} if choice is None else {"tool_choice": choice}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize(("choice", "wanted"), CHOICES)
@pytest.mark.spec("instructions-choice", "PAY-35", "PAY-36")
def test_tool_choice(proxy: Proxy, endpoint: str, choice: Any, wanted: list[str]) -> None:
    """A tool choice adds one exact line between the fixed lines and the schemas; without a choice, this line is absent."""
    found = parts(proxy, endpoint, tool(endpoint), tool(endpoint, "saveNote", NOTE), **chosen(endpoint, choice))
    must_be("The lines between the fixed lines and the schemas", found.conditional, wanted)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-strict", "PAY-37")
def test_strict_tools(proxy: Proxy, endpoint: str) -> None:
    """One line lists exactly the strict tools by name, in the order of the request."""
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
    """With a tool choice and strict tools, the line for the choice comes before the line for the strict tools."""
    found = parts(proxy, endpoint, tool(endpoint, "one", strict=True), tool_choice="required")
    must_be(
        "The lines between the fixed lines and the schemas", found.conditional, [REQUIRED, STRICT.replace("toolA, toolB", "one")]
    )


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-schemas", "PAY-31", "PAY-40", "PAY-41")
def test_schemas(proxy: Proxy, endpoint: str) -> None:
    """The instructions have one line for each tool, with its name and its unchanged schema, in the order of the request."""
    found = parts(proxy, endpoint, tool(endpoint), tool(endpoint, "saveNote", NOTE)).schemas
    must_be("The names of the listed schemas", [name for name, _ in found], ["getFileTree", "saveNote"])
    for (name, text), schema in zip(found, (TREE, NOTE), strict=True):
        must_be_schema(name, text, schema)


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-schema-verbatim", "PAY-41")
def test_schema_of_every_kind(proxy: Proxy, endpoint: str, kind: str) -> None:
    """The line of a tool has the unchanged schema, for every kind of schema."""
    name, text = only("line below the heading of the schemas", parts(proxy, endpoint, tool(endpoint, "t", SCHEMAS[kind])).schemas)
    must_be("The name before the listed schema", name, "t")
    must_be_schema(name, text, SCHEMAS[kind])


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-example", "PAY-48")
def test_example(proxy: Proxy, endpoint: str, kind: str) -> None:
    """The example of a tool is one call in the form of the fixed lines, and its arguments are valid for the schema."""
    guidance = only("tool with guidance", parts(proxy, endpoint, tool(endpoint, "t", SCHEMAS[kind])).guidance)
    example = guidance.example
    assert example.startswith("<tool_call>{"), f"the example must begin with <tool_call>{{: {example!r}"
    assert example.endswith("}</tool_call>"), f"the example must end with }}</tool_call>: {example!r}"
    call = decoded("The object of the example", guidance.example.removeprefix("<tool_call>").removesuffix("</tool_call>"))
    must_be("The keys of the example's object, in their order,", list(call), ["name", "arguments"])
    must_be("name of the example", call["name"], "t")
    assert isinstance(call["arguments"], str), f"arguments of the example must be a JSON string, not {call['arguments']!r}"
    arguments = decoded("arguments of the example", call["arguments"])
    from jsonschema import Draft202012Validator  # takes long to load, and the other cases do not need it

    errors = [error.message for error in Draft202012Validator(SCHEMAS[kind]).iter_errors(arguments)]
    assert errors == [], f"the arguments of the example must be valid for the schema: {arguments}"


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-parameters", "PAY-46")
def test_parameters(proxy: Proxy, endpoint: str, kind: str) -> None:
    """The lines below "Parameters:" name every parameter of the tool."""
    guidance = only("tool with guidance", parts(proxy, endpoint, tool(endpoint, "t", SCHEMAS[kind])).guidance)
    names = SCHEMAS[kind].get("properties", {})
    missing = [name for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", guidance.parameters)]
    must_be(f'The parameters that are not named below "Parameters:" ({guidance.parameters!r})', missing, [])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-guidance", "PAY-42", "PAY-43", "PAY-44", "PAY-45")
def test_guidance(proxy: Proxy, endpoint: str) -> None:
    """Each tool has one guidance block, in the order of the request, with the description of the tool if it has one."""
    found = parts(proxy, endpoint, tool(endpoint), tool(endpoint, "saveNote", NOTE, None)).guidance
    must_be("The tools that have guidance", [each.name for each in found], ["getFileTree", "saveNote"])
    must_be("The descriptions in the guidance", [each.description for each in found], ["List files", None])


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-of-the-schema", "PAY-47", "PAY-49")
def test_guidance_follows_from_the_schema(proxy: Proxy, endpoint: str, kind: str) -> None:
    """Two tools with the same schema have the same parameter lines and the same example, in one request or in two."""
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
    """The developer instructions have exactly the lines and blank lines of the document."""
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
    """Each line below "Parameters:" begins with a dash and a space."""
    for each in parts(proxy, endpoint, tool(endpoint), tool(endpoint, "saveNote", NOTE)).guidance:
        odd = [line for line in each.parameters.split("\n") if not line.startswith("- ")]
        must_be(f"The lines of the parameters of {each.name} that do not begin with '- '", odd, [])


@pytest.mark.spec("instructions-appended", "PAY-52")
def test_instructions_come_last(proxy: Proxy) -> None:
    """The client's instructions come after the last example, unchanged."""
    message = "Speak like\n\n\n  a  pirate.\t\nAlways."
    found = parts(proxy, "responses", tool("responses"), tool("responses", "saveNote", NOTE), instructions=message)
    must_be("The text after the last example", found.after.strip("\n"), message)


@pytest.mark.spec("instructions-alone", "PAY-53", "HAND-24")
def test_instructions_without_tools(proxy: Proxy) -> None:
    """Without tools the developer instructions are only the client's instructions."""
    text = sent(proxy.responses({"instructions": "Speak like a pirate."}).params("newConversation"))
    must_be("newConversation.developerInstructions", text.strip(), "Speak like a pirate.")


@pytest.mark.spec("instructions-system", "PAY-32", "HAND-19")
def test_system_items_are_appended(proxy: Proxy) -> None:
    """The system items come after the tool text, each once, in the order of the request."""
    items = [
        {"role": "system", "content": "First rule."},
        {"role": "developer", "content": [{"type": "input_text", "text": rule} for rule in ("Second rule.", "Third rule.")]},
        {"role": "user", "content": proxy.prompt()},
    ]
    found = parts(proxy, "responses", tool("responses"), input=items)
    rules = ("First rule.", "Second rule.", "Third rule.")
    must_have("The text after the last example", found.after, *rules)
    must_be("The number of times that each rule occurs there", [found.after.count(rule) for rule in rules], [1, 1, 1])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("choice", [each.values[0] for each in CHOICES], ids=[each.id for each in CHOICES])
@pytest.mark.spec("instructions-turn", "PAY-51")
def test_the_turn_has_the_same_text(proxy: Proxy, endpoint: str, choice: Any) -> None:
    """If sendUserTurn has developer instructions, they equal the developer instructions of newConversation."""
    tools = [tool(endpoint, strict=choice == "auto"), tool(endpoint, "saveNote", NOTE)]
    more = {"instructions": "Be kind."} if endpoint == "responses" else {}
    done = proxy.post(endpoint, {"tools": tools, **chosen(endpoint, choice), **more})
    if "developerInstructions" in done.params("sendUserTurn"):
        must_be("sendUserTurn.developerInstructions", sent(done.params("sendUserTurn")), sent(done.params("newConversation")))


@pytest.mark.parametrize("given", NO_TOOLS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("instructions-none", "PAY-50")
def test_no_tools_no_rules(proxy: Proxy, endpoint: str, given: str) -> None:
    """If a request has no tools, no instructions and no system items, the proxy sends empty developer instructions, or none."""
    params = proxy.post(endpoint, NO_TOOLS[given]).params("newConversation")
    must_be_unset("newConversation", params, "developerInstructions")
