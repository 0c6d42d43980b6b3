"""The developer instructions of the specification, read from its text.

developer-instructions.txt is the text block of docs/contract/payloads.md, section "Full developer instructions (Obsidian
tool-call requests)", byte for byte. The code splits the document's text into fixed and conditional lines. The code also splits
the developer instructions that a proxy sends, at the headings of the document's text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TEXT = (Path(__file__).parent / "developer-instructions.txt").read_text(encoding="utf-8")
_BLOCKS = TEXT.rstrip("\n").split("\n\n")
#: The fixed lines, as one text: from "Tool calling instructions:" to "If no tool is needed, ...".
FIXED = _BLOCKS[0]
#: The conditional lines, without the condition in parentheses.
CONDITIONAL = [re.sub(r"\s+\(only if .*\)$", "", line) for line in _BLOCKS[1].splitlines()]
NONE, REQUIRED, FORCED, STRICT = CONDITIONAL
TOOLS_HEADING = _BLOCKS[2].splitlines()[0]
GUIDANCE_HEADING = _BLOCKS[3].splitlines()[0]
TOOL_LINE, DESCRIPTION_LINE, PARAMETERS_LINE, _, EXAMPLE_LINE, _ = _BLOCKS[3].splitlines()[1:]


@dataclass(frozen=True, slots=True)
class Guidance:
    """The guidance for one tool in the developer instructions: the lines below the tool's name, the parameters, and the
    unchanged example call.
    """

    name: str
    description: str | None
    parameters: str
    example: str


@dataclass(frozen=True, slots=True)
class Instructions:
    """The parts of developer instructions: the text before the first heading, the schemas, the guidance, and the rest."""

    before: str
    conditional: list[str]
    schemas: list[tuple[str, str]]
    guidance: list[Guidance]
    after: str


def take_apart(text: str) -> Instructions:
    """Split developer instructions at the headings of the specification; raises AssertionError if a heading is missing."""
    assert text.count(TOOLS_HEADING) == 1, f"the line {TOOLS_HEADING!r} must occur once"
    assert text.count(GUIDANCE_HEADING) == 1, f"the line {GUIDANCE_HEADING!r} must occur once"
    before, _, rest = text.partition(TOOLS_HEADING)
    listed, _, guided = rest.partition(GUIDANCE_HEADING)
    schemas = [re.match(r"- ([^:]+): (.*)$", line) for line in listed.strip("\n").split("\n") if line]
    assert all(schemas), f"each line below {TOOLS_HEADING!r} must be '- toolName: schema': {listed!r}"
    guidance, after = _guidance(guided)
    # By number, so that only the check of a fixed line reports a wrong fixed line.
    conditional = before.split("\n")[FIXED.count("\n") + 1 :]
    found = [(match[1], match[2]) for match in schemas if match]
    return Instructions(before, [line for line in conditional if line.strip()], found, guidance, after)


def laid_out(found: Instructions) -> str:
    """Return the tool text that the given parts form in the layout of the specification, with its blank lines and no other
    line.
    """
    conditional = ["\n".join(found.conditional)] if found.conditional else []
    schemas = "\n".join([TOOLS_HEADING, *(f"- {name}: {schema}" for name, schema in found.schemas)])
    blocks = "\n\n".join(map(_block, found.guidance))
    return "\n\n".join([FIXED, *conditional, schemas, f"{GUIDANCE_HEADING}\n{blocks}"])


def _block(tool: Guidance) -> str:
    described = [] if tool.description is None else [f"Description: {tool.description}"]
    return "\n".join([f"Tool: {tool.name}", *described, PARAMETERS_LINE, tool.parameters, EXAMPLE_LINE, tool.example])


def _guidance(text: str) -> tuple[list[Guidance], str]:
    heads = list(re.finditer(r"(?m)^Tool: (.*)$", text))
    found, after = [], ""
    for i, head in enumerate(heads):
        block = text[head.end() : heads[i + 1].start() if i + 1 < len(heads) else len(text)]
        top, mark, bottom = block.partition(f"\n{EXAMPLE_LINE}\n")
        assert mark, f"the block of {head[1]} must have a line {EXAMPLE_LINE!r}"
        above, mark, parameters = top.partition(f"\n{PARAMETERS_LINE}")
        assert mark, f"the block of {head[1]} must have a line {PARAMETERS_LINE!r}"
        described = re.search(r"(?ms)^Description: (.*)\Z", above)
        example, _, after = bottom.partition("\n")
        found.append(Guidance(head[1], described[1] if described else None, parameters.strip("\n"), example))
    return found, after


def sent(params: dict[str, Any]) -> str:
    """Return the developer instructions of a payload; raises AssertionError if they are not a string."""
    text = params.get("developerInstructions")
    assert isinstance(text, str), f"developerInstructions must be a text, not {text!r}"
    return text
