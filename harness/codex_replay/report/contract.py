"""Read the contract: all statements of the specification that a check can cite, by identifier (such as `PAY-07` or `REAL-31`).

Each document of the contract has one page in docs/contract, with a list of statements. In an installed wheel, the pages are
in codex_replay/packaged/contract. Each statement is one line of a page, with its anchor, its identifier and its text. A
note in italics after a statement explains how the real Codex differs from the statement, or why no check exists. No other
module reads the pages of the contract.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The pages, in the order of the documentation.
PAGES = ("payloads", "handoff", "schema-tools", "lite", "editor", "real-0.92")
#: Where the pages are in the repository.
FOLDER = "docs/contract"
_IDENTIFIER = re.compile(r"\b(?:PAY|HAND|SCHEMA|LITE|EDIT|REAL)-\d+\b")
_LINE = re.compile(r'- <a id="(?P<anchor>[a-z]+-\d+)"></a>\*\*(?P<id>[A-Z]+-\d+)\*\* (?P<text>.+)')
_OTHERWISE = re.compile(r" \*The real 0\.92\.0 does otherwise: ([^*]+)\.\*$")
_UNCHECKED = re.compile(r" \*(No check yet\.|No check: [^*]+)\*$")


class UnknownStatement(LookupError):
    """No page of the contract has the identifier; the message of the exception is a sentence."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: the `page` and the `title` of the list, the `section` of the source document, and the one-line `text`.

    `otherwise` names the statements about the real Codex that contradict the statement. `unchecked` is the reason why no
    check cites the statement, or "".
    """

    id: str
    page: str
    title: str
    section: str
    text: str
    otherwise: tuple[str, ...] = ()
    unchecked: str = ""

    @property
    def link(self) -> str:
        """Return the place of the statement in the repository: the path of its page, and its anchor."""
        return f"{FOLDER}/{self.page}.md#{self.id.lower()}"


def folder() -> Path:
    """Return the folder with the pages of the contract: the installed folder, otherwise the folder of the checkout."""
    package = Path(__file__).parent.parent
    packaged = package / "packaged" / "contract"
    return packaged if packaged.is_dir() else package.parent.parent / FOLDER


@cache
def statements() -> dict[str, Statement]:
    """Return all statements by identifier, in the order of the pages; raises `OSError` if a page is missing."""
    return {each.id: each for page in PAGES for each in parse(page, (folder() / f"{page}.md").read_text(encoding="utf-8"))}


def page_titles() -> dict[str, str]:
    """Return the title of each page; the keys are the file names without suffix."""
    return {each.page: each.title for each in statements().values()}


def parse(page: str, text: str) -> list[Statement]:
    """Return the statements on a page of the contract.

    The first heading is the title of the page, and the other headings are its sections.
    """
    title, section, found = "", "", []
    for line in text.splitlines():
        if line.startswith("# "):
            title = line[2:]
        elif line.startswith("## "):
            section = line[3:]
        elif (match := _LINE.fullmatch(line)) is not None:
            message = match["text"]
            otherwise, unchecked = _OTHERWISE.search(message), _UNCHECKED.search(message)
            plain = _UNCHECKED.sub("", _OTHERWISE.sub("", message))
            others = tuple(otherwise[1].split(", ")) if otherwise else ()
            found.append(Statement(match["id"], page, title, section, plain, others, unchecked[1] if unchecked else ""))
    return found


def resolve(identifier: str) -> Statement:
    """Return the statement of an identifier; raises `UnknownStatement` if there is none."""
    found = statements().get(identifier)
    if found is None:
        raise UnknownStatement(f"{identifier} is not a statement of {FOLDER}; its pages list the identifiers that exist.")
    return found


def cited(text: str) -> list[str]:
    """Return the identifiers that a text cites, each once, in order, without checking if they exist."""
    return list(dict.fromkeys(_IDENTIFIER.findall(text)))


def describe(identifiers: Iterable[str]) -> str:
    """Return one line for each statement: its identifier and its text; raises `UnknownStatement` for an unknown identifier."""
    return "\n".join(f"{each.id}: {each.text}" for each in map(resolve, identifiers))
