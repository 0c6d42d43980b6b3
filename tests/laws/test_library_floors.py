"""Inside the library: no import circle, packages of core and protocol that look down only, and the drawn package graph.

The graph counts imports for type checkers too.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.laws.import_graph import ROOT, Graph, circles, graph, package, packages, sources

PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- packages: computed -->\n", "<!-- packages: end -->"

WIRE = ("core/value", "core/text", "core/wire")
TABLES = ("protocol/versions", "protocol/data_tables")
#: Package of core or protocol -> the packages of its floor that it may import.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "core": (),
    "core/value": (),
    "core/text": ("core/value",),
    "core/wire": ("core/value", "core/text"),
    "core/cassette": WIRE,
    "core/redact": (*WIRE, "core/cassette"),
    "core/normalise": (*WIRE, "core/cassette"),
    "core/replay": (*WIRE, "core/cassette", "core/redact", "core/normalise"),
    "protocol": (),
    "protocol/versions": (),
    "protocol/data_tables": ("protocol/versions",),
    "protocol/schema": TABLES,
    "protocol/drift": (*TABLES, "protocol/schema"),
    "protocol/refusals": TABLES,
    "protocol/turn": TABLES,
    "protocol/recordings": TABLES,
    "protocol/behaviour": TABLES,
    "protocol/learning": (*TABLES, "protocol/recordings"),
    "protocol/script": (),
    "protocol/responses": (*TABLES, "protocol/script"),
}
LIBRARY = sources("codex_replay")


@cache
def imports() -> Graph:
    """Return the graph of the library."""
    return graph(LIBRARY)


def upward(imports: Graph) -> list[str]:
    """Return each import inside core or protocol that its package may not have."""
    found = []
    for module, names in imports.items():
        own = package(module)
        if own in MAY_IMPORT:
            allowed = (own, *MAY_IMPORT[own])
            same = [name for name in names if package(name).partition("/")[0] == own.partition("/")[0]]
            found += [f"{module} imports {name}" for name in same if package(name) not in allowed]
    return sorted(found)


def drawn(imports: Graph) -> str:
    """Return the package graph as the page shows it: a row for each package, the highest floor first."""
    floors = ("cli", "suites", "plugin", "report", "snapshot", "shell", "protocol", "core", "reference")
    rows = [(name, names) for name, names in packages(imports).items() if name]
    rows.sort(key=lambda row: (floors.index(row[0].partition("/")[0]), row[0]))
    lines = [f"| `{name}` | {', '.join(sorted(names)) or '-'} |" for name, names in rows]
    return "\n".join(["| package | imports |", "|---|---|", *lines, ""])


def test_there_is_no_circle() -> None:
    """In the library, the fakes and the suites together."""
    assert circles(graph({**LIBRARY, **sources("codex_fakes"), **sources("suites")})) == []


def test_core_and_protocol_look_down_only() -> None:
    assert {package(name) for name in LIBRARY if name.split(".")[1:2] in (["core"], ["protocol"])} == MAY_IMPORT.keys()
    assert upward(imports()) == []


def test_the_page_shows_the_package_graph() -> None:
    """Write it anew with ``python -m tests.laws.test_library_floors``."""
    shown = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert shown == drawn(imports()), "docs/architecture.md is out of date: python -m tests.laws.test_library_floors"


@pytest.mark.parametrize(
    ("module", "line", "circle"),
    [
        ("core.wire.sse", "from codex_replay.core.cassette.http_frames import sse_fields", True),
        ("core.redact.redactor", "from codex_replay.core.replay.match import Matcher", False),
        ("core.text.numbers", "if TYPE_CHECKING:\n    from codex_replay.core.wire import sse", False),
        ("protocol.versions", "def f():\n    from codex_replay.protocol.data_tables import load", True),
        ("protocol.schema.bundle", "from codex_replay.protocol.drift.compare import compare", True),
        ("protocol.script.script", "import codex_replay.protocol.responses.items", True),
    ],
)
def test_a_planted_violation_is_found(module: str, line: str, circle: bool) -> None:
    name = f"codex_replay.{module}"
    planted = {**imports(), **graph({name: f"{LIBRARY[name]}\n{line}"}, LIBRARY)}
    assert [each.split()[0] for each in upward(planted)] == [name]
    assert bool(circles(planted)) == circle
    assert drawn(planted) != drawn(imports())


def write(page: Path = PAGE) -> None:
    """Write the graph of today into the page."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    page.write_text(before + BEGIN + drawn(imports()) + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    write()
