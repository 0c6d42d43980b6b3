"""Draw sentences at random from documents, messages and docstrings, to be read cold: is each understood at first reading?

    python -m tests.tools.random_sentences SEED [COUNT [ROOT]]

The same seed draws the same sentences from the same sources. ROOT is a checkout (default: this one), to compare two versions.
"""

from __future__ import annotations

import ast
import inspect
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("harness", "fake_server", "suites")
#: Generated pages, whose sentences are Codex's own.
NOT_OURS = ("docs/schema/", "docs/drift/", "docs/contract/traceability")
#: A sentence has at least so many words; less is a name.
WORDS = 5
#: The list of sources at the end of a docstring is no sentence.
_SOURCE = re.compile(r"(?:^|(?<=[.:] ))Sources?:.*(?:\n(?!\n).*)*", re.MULTILINE)
#: Calls and members whose strings are prompts, replies or payloads of a conversation.
SPOKEN = frozenset(
    {"prompt", "ask", "chat", "post", "responses", "send_turn", "turn", "message", "script", "TurnBuilder", "user", "say"}
)
#: Between two paragraphs, or before the next item of a list.
_BREAK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"]|(?:fake-codex|codex-replay|npm|pytest)\b)")


def prose(text: str) -> Iterator[str]:
    """Yield the paragraphs of a Markdown page: no code, no headings, no tables, no comments."""
    text = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^#+ .*\n?", "\n", without_code(text), flags=re.MULTILINE)
    for block in _BREAK.split(text):
        if block.strip() and not block.lstrip().startswith(("|", "!", "<")):
            yield block.strip("\n")


def without_code(text: str) -> str:
    """Return the text without the paragraphs whose every line is indented by four spaces or a tab."""
    blocks = (block.split("\n") for block in re.split(r"\n[ \t]*\n", text))
    return "\n\n".join("\n".join(lines) for lines in blocks if not all(line.startswith(("    ", "\t")) for line in lines if line))


def texts(source: str) -> Iterator[str]:
    """Yield the docstrings of a module, and the texts in it that look like messages: no prompts, no sources."""
    nodes = list(ast.walk(ast.parse(source)))  # each node after the one that it is in
    spoken: set[int] = set()
    for node in nodes:
        if id(node) not in spoken and _speaks(node):
            spoken.update(id(part) for part in ast.walk(node))
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            if id(node) not in spoken:
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "\u2026" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            if id(node) in docs:
                yield _SOURCE.sub("", without_code(inspect.cleandoc(node.value)))
            elif id(node) not in spoken:
                yield node.value


def _speaks(node: ast.AST) -> bool:
    """Return True for a call, an assignment or a member that holds a prompt, a reply or a payload, not a message to a person."""
    if isinstance(node, ast.Call):
        return _last(node.func) in SPOKEN
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(target, ast.Name) and target.id.isupper() for target in targets)
    return isinstance(node, ast.Dict)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def sentences(root: Path) -> list[tuple[str, str]]:
    """Return (place, sentence) of every sentence below `root`, in a fixed order."""
    found = []
    pages = [root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md", *sorted((root / "docs").rglob("*.md"))]
    for page in pages:
        name = page.relative_to(root).as_posix()
        if not name.startswith(NOT_OURS):
            found += [(name, part) for block in prose(page.read_text(encoding="utf-8")) for part in _END.split(block)]
    for folder in CODE:
        for path in sorted((root / folder).rglob("*.py")):
            for text in texts(path.read_text(encoding="utf-8")):
                blocks = _BREAK.split(text)
                found += [(path.relative_to(root).as_posix(), part) for block in blocks for part in _END.split(block)]
    plain = ((place, " ".join(part.split())) for place, part in found)
    return [(place, part) for place, part in plain if len(re.findall(r"[A-Za-z]{2,}", part)) >= WORDS and part[-1:] in ".!?"]


def draw(root: Path, seed: int, count: int) -> list[tuple[str, str]]:
    """Return `count` sentences, the same for one seed."""
    return random.Random(seed).sample(sentences(root), count)


if __name__ == "__main__":
    given = sys.argv[1:]
    if not given or not all(number.isdecimal() for number in given[:2]):
        sys.exit(__doc__)
    root = Path(given[2]) if len(given) > 2 else ROOT
    for number, (place, sentence) in enumerate(draw(root, int(given[0]), int(given[1]) if len(given) > 1 else 30), 1):
        print(f"{number:2} {sentence}   [{place}]")
