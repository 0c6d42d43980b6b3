"""Write docs/contract/traceability.md anew: `python -m tests.tools.traceability_page > docs/contract/traceability.md`.

The citations are read from the sources: the markers and docstrings of the test functions of suites/ and tests/, and the tables
beside them. A check of a suite goes by the id of its `spec` marker, any other one by its module and function.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

from codex_replay.report.contract import PAGES, cited, statements

ROOT = Path(__file__).resolve().parents[2]
HEAD = """# The checks of each statement

The first tables list, for each statement of [the contract](README.md), the checks that cite it; the last one lists, for each
check, its statements. `python -m tests.tools.traceability_page > docs/contract/traceability.md` writes this page from the
sources, and a test compares it with them.
"""


def main() -> None:
    """Print the page."""
    sys.stdout.write(page(checks(ROOT)))


def checks(root: Path) -> dict[str, list[str]]:
    """Return the statements that each check cites, by the check's name, in the order of the files."""
    found: dict[str, list[str]] = {}
    for top in ("suites", "tests"):
        for path in sorted((root / top).rglob("test_*.py")):
            name = str(path.relative_to(root / "suites" if top == "suites" else root).with_suffix(""))
            for check, identifiers in checks_of(path.read_text(encoding="utf-8"), tables=top == "suites"):
                known = found.setdefault(f"{name}: {check}" if check else name, [])
                known += [each for each in identifiers if each not in known]
    return found


def checks_of(source: str, *, tables: bool) -> list[tuple[str, list[str]]]:
    """Return (check, statements) for each test function that cites any; "" is the module, whose tables cite the rest."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            name, words = node.name, [ast.get_docstring(node) or ""]
            for decorator in node.decorator_list:
                texts = [
                    each.value for each in ast.walk(decorator) if isinstance(each, ast.Constant) and isinstance(each.value, str)
                ]
                words += texts
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.spec":
                    name = texts[0]
            found.append((name, cited(" ".join(words))))
        elif tables and isinstance(node, ast.Assign | ast.AnnAssign):
            found.append(("", cited(ast.unparse(node))))
    return [(name, identifiers) for name, identifiers in found if identifiers]


def page(found: dict[str, list[str]]) -> str:
    """Return the text of the page."""
    by_statement: dict[str, list[str]] = defaultdict(list)
    for check, identifiers in found.items():
        for each in identifiers:
            by_statement[each].append(check)
    lines = [HEAD]
    for page_name in PAGES:
        rows = [each for each in statements().values() if each.page == page_name]
        lines += [f"## {rows[0].title}", "", "| statement | checks |", "|---|---|"]
        for each in rows:
            cell = ", ".join(f"[{check}](#{anchor(check)})" for check in by_statement[each.id])
            lines.append(f"| [{each.id}]({each.page}.md#{each.id.lower()}) | {cell or each.unchecked} |")
        lines.append("")
    lines += ["## The statements of each check", "", "| check | statements |", "|---|---|"]
    for check, identifiers in found.items():
        cell = ", ".join(f"[{each}]({statements()[each].page}.md#{each.lower()})" for each in identifiers)
        lines.append(f'| <a id="{anchor(check)}"></a>{check} | {cell} |')
    return "\n".join(lines) + "\n"


def anchor(check: str) -> str:
    """Return the anchor of a check's row."""
    return re.sub(r"[^a-z0-9]+", "-", check.lower()).strip("-")


if __name__ == "__main__":
    main()
