"""The developer instructions: their lines, their conditions, their examples."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from codex_replay.reference.proxy.asking import examples, instructions, payloads
from codex_replay.reference.proxy.wire.json_text import text
from tests.strength.proxy_variants.patching import after, in_params, replaced, variant


def in_rules(change: Callable[[str], str]) -> None:
    """Change the fixed lines."""
    instructions.RULES = change(instructions.RULES)


def in_text(change: Callable[[str], str]) -> None:
    """Change the text for the tools, when there is one."""
    after(payloads, "tool_instructions", lambda said, *_: change(said) if said else said)


def in_choice(change: Callable[[list[str], Any], list[str]]) -> None:
    """Change the conditional lines."""
    after(instructions, "choice_lines", lambda lines, tools: change(lines, tools))


def in_example(change: Callable[[Any, Any], Any]) -> None:
    """Change the example for a schema: `change(example, schema)`."""
    after(instructions, "example_for_schema", lambda found, schema: change(found, schema))


# -- the fixed lines -------------------------------------------------------------------------------------------------------


@variant
def heading_without_colon() -> None:
    in_rules(lambda rules: replaced(rules, "Tool calling instructions:", "Tool calling instructions"))


@variant
def typographic_quotes() -> None:
    in_rules(lambda rules: replaced(rules, '"name" and "arguments"', "\u201cname\u201d and \u201carguments\u201d"))


@variant
def bad_example_left_out() -> None:
    in_rules(lambda rules: re.sub(r"\nBad: .*", "", rules))


@variant
def two_lines_swapped() -> None:
    first, second = 'The "arguments" field must be a JSON string.', 'If a tool has no parameters, use arguments "{}".'
    in_rules(lambda rules: replaced(rules, f"{first}\n{second}", f"{second}\n{first}"))


@variant
def last_line_left_out() -> None:
    in_rules(lambda rules: replaced(rules, "\nIf no tool is needed, respond with plain text.", ""))


@variant
def a_blank_at_a_lines_end() -> None:
    in_rules(lambda rules: replaced(rules, "Never repeat the closing tag.", "Never repeat the closing tag. "))


@variant
def exact_example_not_escaped() -> None:
    in_rules(lambda rules: replaced(rules, '\\"query\\"', '"query"'))


@variant
def rules_with_crlf() -> None:
    in_rules(lambda rules: rules.replace("\n", "\r\n"))


@variant
def a_line_before_the_rules() -> None:
    in_rules(lambda rules: "You are a helpful assistant.\n" + rules)


@variant
def no_blank_line_after_the_rules() -> None:
    in_text(lambda said: replaced(said, instructions.RULES + "\n\n", instructions.RULES + "\n"))


# -- the conditional lines -------------------------------------------------------------------------------------------------


@variant
def choice_none_unsaid() -> None:
    in_choice(lambda lines, _: [line for line in lines if "none" not in line])


@variant
def choice_required_unsaid() -> None:
    in_choice(lambda lines, _: [line for line in lines if "required" not in line])


@variant
def choice_forced_unsaid() -> None:
    in_choice(lambda lines, _: [line for line in lines if "forced" not in line])


@variant
def choice_forced_said_as_required() -> None:
    in_choice(
        lambda ls, _: [
            re.sub("^Tool choice is forced.*", "Tool choice is required: you MUST emit at least one <tool_call>.", x) for x in ls
        ]
    )


@variant
def choice_forced_without_the_name() -> None:
    in_choice(lambda lines, tools: [line.replace(f'"{tools.forced}"', '"TOOL_NAME"') for line in lines])


@variant
def choice_auto_said() -> None:
    in_choice(lambda lines, tools: ["Tool choice is auto: emit <tool_call> when needed."] * (tools.choice == "auto") + lines)


@variant
def remark_of_the_document_kept() -> None:
    in_choice(lambda lines, _: [f'{x}         (only if tool_choice = "none")' if "none" in x else x for x in lines])


@variant
def strict_unsaid() -> None:
    in_choice(lambda lines, _: [line for line in lines if not line.startswith("Strict")])


@variant
def strict_names_all_tools() -> None:
    def change(lines: list[str], tools: Any) -> list[str]:
        names = ", ".join(function["name"] for function in tools.functions)
        return [re.sub("(?<=^Strict tools: )[^.]*", names, line) for line in lines]

    in_choice(change)


@variant
def strict_before_choice() -> None:
    in_choice(lambda lines, _: lines[::-1])


# -- the schemas -----------------------------------------------------------------------------------------------------------


def in_listed(change: Callable[[Any], Any]) -> None:
    """Change the schemas of the list "Available tools"."""

    def line(match: re.Match[str]) -> str:
        return match[1] + text(change(json.loads(match[2])))

    def changed(said: str) -> str:
        before, mark, behind = said.partition("Available tools (schema):\n")
        listed, end, rest = behind.partition("\n\n")
        return before + mark + re.sub(r"(?m)^(- [^:]*: )(.*)$", line, listed) + end + rest

    in_text(changed)


@variant
def listed_schemas_sorted() -> None:
    in_listed(lambda schema: {key: schema[key] for key in sorted(schema)})


@variant
def listed_schemas_without_definitions() -> None:
    in_listed(lambda schema: {key: value for key, value in schema.items() if key != "$defs"})


@variant
def listed_schemas_without_required() -> None:
    in_listed(lambda schema: {key: value for key, value in schema.items() if key != "required"})


@variant
def listed_schemas_cut() -> None:
    def cut(said: str) -> str:
        return re.sub(r"(?m)^(- \w+: .{200}).+$", r"\1...", said)

    in_text(cut)


@variant
def listed_tools_reversed() -> None:
    def change(said: str) -> str:
        before, mark, behind = said.partition("Available tools (schema):\n")
        listed, end, rest = behind.partition("\n\n")
        return before + mark + "\n".join(listed.split("\n")[::-1]) + end + rest

    in_text(change)


@variant
def nulls_lost_in_listed_schemas() -> None:
    def lost(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: lost(each) for key, each in value.items() if each is not None}
        return [lost(each) for each in value if each is not None] if isinstance(value, list) else value

    in_listed(lost)


# -- the examples ----------------------------------------------------------------------------------------------------------


@variant
def example_arguments_as_object() -> None:
    def call(name: str, arguments: str) -> str:
        return "<tool_call>" + text({"name": name, "arguments": json.loads(arguments)}) + "</tool_call>"

    instructions.call_markup = call


@variant
def example_keys_in_other_order() -> None:
    def call(name: str, arguments: str) -> str:
        return "<tool_call>" + text({"arguments": arguments, "name": name}) + "</tool_call>"

    instructions.call_markup = call


@variant
def example_in_an_array() -> None:
    def call(name: str, arguments: str) -> str:
        return "<tool_call>" + text([{"name": name, "arguments": arguments}]) + "</tool_call>"

    instructions.call_markup = call


@variant
def example_not_closed() -> None:
    after(instructions, "example_call", lambda said, *_: said.removesuffix("</tool_call>"))


@variant
def example_without_arguments() -> None:
    in_example(lambda *_: {})


@variant
def example_ignores_enums() -> None:
    examples._from_enum = lambda schema: "example"


@variant
def example_takes_any_integer() -> None:
    examples._number = lambda schema, whole: 1


@variant
def example_ignores_lengths() -> None:
    examples._string = lambda schema: "example"


@variant
def example_of_one_element() -> None:
    after(examples, "_array", lambda found, *_: found[:1])


@variant
def example_leaves_references_alone() -> None:
    examples.resolve = lambda schema, root: {}


@variant
def example_takes_nested_for_text() -> None:
    old = examples._of_type

    def of_type(kind: str, schema: Any, root: Any, open_refs: tuple[str, ...]) -> Any:
        return "example" if kind == "object" and schema is not root else old(kind, schema, root, open_refs)

    examples._of_type = of_type


@variant
def example_with_a_key_too_many() -> None:
    in_example(lambda found, _: {**found, "explanation": "why"} if isinstance(found, dict) else found)


# -- parameters, guidance, what follows --------------------------------------------------------------------------------------


@variant
def only_required_parameters() -> None:
    after(instructions, "summarize_schema_parameters", lambda lines, _: [line for line in lines if "optional" not in line])


@variant
def parameter_names_in_ascii() -> None:
    after(instructions, "summarize_schema_parameters", lambda ls, _: [x.encode("ascii", "ignore").decode() for x in ls])


@variant
def at_most_three_parameters() -> None:
    after(instructions, "summarize_schema_parameters", lambda lines, _: lines[:3])


@variant
def description_of_nothing() -> None:
    after(
        instructions,
        "_guidance",
        lambda said, f: (
            said.replace("\nParameters:", "" if f.get("description") else "\nDescription: none\nParameters:", 1)
            if not f.get("description")
            else said
        ),
    )


@variant
def no_description() -> None:
    after(instructions, "_guidance", lambda said, _: re.sub(r"\nDescription: .*", "", said))


@variant
def guidance_for_the_first_tool() -> None:
    def change(said: str) -> str:
        first = said.index("\nTool: ")
        second = said.find("\n\nTool: ", first + 1)
        return said if second < 0 else said[:second]

    in_text(change)


@variant
def instructions_first() -> None:
    old = payloads.developer_instructions

    def told(asked: Any, settings: Any) -> Any:
        return payloads.joined([asked.instructions or "", old(asked._replace(instructions=None), settings) or ""])

    payloads.developer_instructions = told


@variant
def instructions_in_one_line() -> None:
    old = payloads.developer_instructions

    def told(asked: Any, settings: Any) -> Any:
        return old(asked._replace(instructions=" ".join((asked.instructions or "").split()) or None), settings)

    payloads.developer_instructions = told


@variant
def instructions_lost_with_tools() -> None:
    old = payloads.developer_instructions

    def told(asked: Any, settings: Any) -> Any:
        return old(asked._replace(instructions=None) if asked.tools.definitions else asked, settings)

    payloads.developer_instructions = told


@variant
def instructions_twice() -> None:
    old = payloads.developer_instructions

    def told(asked: Any, settings: Any) -> Any:
        return payloads.joined([old(asked, settings) or "", asked.instructions or ""])

    payloads.developer_instructions = told


@variant
def rules_without_tools() -> None:
    after(payloads, "tool_instructions", lambda said, *_: said or instructions.RULES)


@variant
def system_items_lost_with_tools() -> None:
    old = payloads.developer_instructions

    def told(asked: Any, settings: Any) -> Any:
        return old(asked._replace(system=()) if asked.tools.definitions else asked, settings)

    payloads.developer_instructions = told


@variant
def system_items_reversed() -> None:
    old = payloads.developer_instructions
    payloads.developer_instructions = lambda asked, settings: old(asked._replace(system=asked.system[::-1]), settings)


@variant
def system_items_before_the_tools() -> None:
    old = payloads.developer_instructions

    def told(asked: Any, settings: Any) -> Any:
        system = asked.system if asked.endpoint == "responses" else ()
        return payloads.joined([*system, old(asked._replace(system=()), settings) or ""])

    payloads.developer_instructions = told


@variant
def turn_has_the_rules_only() -> None:
    def change(params: Any, *_: Any) -> None:
        if params.get("developerInstructions"):
            params["developerInstructions"] = instructions.RULES

    in_params("sendUserTurn", change)


@variant
def conversation_has_no_instructions() -> None:
    in_params("newConversation", lambda params, *_: params.update(developerInstructions=None))


# -- blank lines, foreign lines and dashes ---------------------------------------------------------------------------------


@variant
def a_blank_line_between_the_conditions() -> None:
    in_choice(lambda lines, _: ["\n\n".join(lines)] if lines else [])


@variant
def a_blank_line_below_the_heading_of_the_tools() -> None:
    in_text(lambda said: replaced(said, "Available tools (schema):\n", "Available tools (schema):\n\n"))


@variant
def a_blank_line_below_the_heading_of_the_guidance() -> None:
    in_text(lambda said: replaced(said, "(schema-conformant):\n", "(schema-conformant):\n\n"))


@variant
def no_blank_line_between_the_blocks() -> None:
    in_text(lambda said: said.replace("</tool_call>\n\nTool: ", "</tool_call>\nTool: "))


@variant
def a_line_of_its_own_in_a_block() -> None:
    after(instructions, "_guidance", lambda said, _: said.replace("\nExample tool_call:", "\n\nExample tool_call:"))


@variant
def a_line_of_its_own_below_the_name() -> None:
    after(instructions, "_guidance", lambda said, _: said.replace("\n", "\nKind: function\n", 1))


@variant
def a_line_of_its_own_behind_the_blocks() -> None:
    in_text(lambda said: said + "\n\nRemember these rules.")


@variant
def parameters_with_stars() -> None:
    after(instructions, "_guidance", lambda said, _: re.sub("(?m)^- ", "* ", said))


@variant
def only_the_first_parameter_has_a_dash() -> None:
    after(instructions, "_guidance", lambda said, _: re.sub(r"(?m)(?<=\n)- (?!path )", "  ", said))


# -- what the guidance follows from ----------------------------------------------------------------------------------------


@variant
def examples_count_up() -> None:
    made: list[Any] = []

    def numbered(found: Any, _: Any) -> Any:
        made.append(found)
        return {key: value + len(made) if type(value) is int else value for key, value in found.items()}

    in_example(numbered)


@variant
def parameters_numbered_through() -> None:
    made: list[str] = []

    def numbered(lines: list[str], *_: Any) -> list[str]:
        made.extend(lines)
        return [f"{line} ({len(made) - len(lines) + at})" for at, line in enumerate(lines)]

    after(instructions, "summarize_schema_parameters", numbered)


@variant
def schema_letters_escaped() -> None:
    in_text(
        lambda said: re.sub(
            r"(?m)^(- \w+: )(\{.*)$",
            lambda line: line[1] + json.dumps(json.loads(line[2]), separators=(",", ":")),
            said,
        )
    )
