"""The import graph of our packages, computed from their sources. Imports for type checkers count: a reader follows them too."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Package -> the folder that it is in.
PLACES = {"codex_replay": ROOT / "harness", "codex_fakes": ROOT / "fake_server", "suites": ROOT, "tests": ROOT, "bench": ROOT}

Graph = Mapping[str, set[str]]


def sources(package: str) -> dict[str, str]:
    """Return module -> source, of all modules of a package."""
    root = PLACES[package]
    names = {path: ".".join(path.relative_to(root).with_suffix("").parts) for path in (root / package).rglob("*.py")}
    return {name.removesuffix(".__init__"): path.read_text(encoding="utf-8") for path, name in names.items()}


def graph(modules: Mapping[str, str], known: Container[str] | None = None) -> dict[str, set[str]]:
    """Return module -> those of `known` (default: of `modules`) that it imports, wherever the import stands."""
    known = modules if known is None else known
    return {name: {found for found in _imported(source, known) if found in known} - {name} for name, source in modules.items()}


@cache
def import_statements(source: str) -> tuple[tuple[ast.Import | ast.ImportFrom, bool], ...]:
    """Return each import of a module, wherever it stands, and whether it is for type checkers alone."""
    return tuple(_imports_in(ast.parse(source), False))


def _imports_in(block: ast.AST, typing: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    # An import is a statement: nothing below an expression is walked through, which is nine tenths of a module.
    for field, inner in ast.iter_fields(block):
        if field in ("body", "orelse", "finalbody", "handlers", "cases") and isinstance(inner, list):
            only_types = typing or (field == "body" and isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test))
            for node in inner:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    yield node, only_types
                else:
                    yield from _imports_in(node, only_types)


@cache
def runtime_imports(source: str) -> frozenset[str]:
    """Return all that a module imports, wherever the import stands; `if TYPE_CHECKING` blocks load nothing and are left out."""
    found: set[str] = set()
    for node, typing in import_statements(source):
        if typing:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(found)


def _imported(source: str, known: Container[str]) -> set[str]:
    found: set[str] = set()
    for node, _ in import_statements(source):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        else:
            assert node.level == 0, "imports are absolute here"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else str(node.module) for name in names}
    return found


def circles(imports: Graph) -> list[list[str]]:
    """Return the sets of modules that import each other, directly or through others, sorted."""
    reached: dict[str, set[str]] = {}
    for start in imports:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = imports.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        reached[start] = seen
    found = {frozenset(b for b in reached[a] if a in reached.get(b, ())) for a in imports if a in reached[a]}
    return sorted(sorted(one) for one in found)


def package(module: str) -> str:
    """Return the package of a module of the library as the page names it: "core/wire", "report"; "" for the root."""
    parts = module.split(".")
    folder = PLACES[parts[0]].joinpath(*parts[:3])
    return "/".join(parts[1:3]) if folder.is_dir() or parts[1:2] in (["core"], ["protocol"]) else "/".join(parts[1:2])


def packages(imports: Graph) -> dict[str, set[str]]:
    """Return package -> the packages that it imports; a package of another floor is named by the floor alone."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, names in imports.items():
        own = package(module)
        for name in names:
            other = package(name)
            if other.partition("/")[0] != own.partition("/")[0]:
                other = other.partition("/")[0]
            if other != own:
                found[own].add(other)
    return {name: found[name] for name in sorted({package(module) for module in imports})}
