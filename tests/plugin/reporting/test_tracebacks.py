"""A failure points at the line of its case: what the harness does on the way there stays out of the traceback.

pytest leaves out of a traceback the functions that set `__tracebackhide__`. All must that raise a failure of the subject, and all
of the same module that call one of these.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3] / "harness" / "codex_replay"
MODULES = [
    "shell/rpc/client.py",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "plugin").rglob("*.py") if "SubjectFailure(" in path.read_text()),
]
RAISED = ("SubjectFailure", "ErrorReply")


def _raises(function: ast.FunctionDef) -> bool:
    raised = (node.exc for node in ast.walk(function) if isinstance(node, ast.Raise))
    return any(isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id in RAISED for each in raised)


def _calls(function: ast.FunctionDef) -> set[str]:
    """The methods of its own object that a function calls or, being properties, reads."""
    return {
        node.attr
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    }


def _hides(function: ast.FunctionDef) -> bool:
    assigned = (target for node in ast.walk(function) if isinstance(node, ast.Assign) for target in node.targets)
    return any(isinstance(target, ast.Name) and target.id == "__tracebackhide__" for target in assigned)


def showing(source: str) -> list[str]:
    """The functions that would stand in the traceback of a failure."""
    tree = ast.parse(source)
    return [name for each in ast.walk(tree) if isinstance(each, ast.Module | ast.ClassDef) for name in _shown_of(each)]


def _shown_of(owner: ast.Module | ast.ClassDef) -> list[str]:
    functions = [node for node in owner.body if isinstance(node, ast.FunctionDef)]
    raising = {function.name for function in functions if _raises(function)}
    while more := {function.name for function in functions if _calls(function) & raising} - raising:
        raising |= more
    return [function.name for function in functions if function.name in raising and not _hides(function)]


@pytest.mark.parametrize("module", MODULES)
def test_a_failure_points_at_its_case(module: str) -> None:
    assert showing((ROOT / module).read_text()) == []


def test_one_that_shows_itself_is_found() -> None:
    source = (ROOT / "shell/rpc/client.py").read_text()
    assert source.count("        __tracebackhide__ = True\n") > 5
    assert {"send", "notify", "post", "call"} <= set(showing(source.replace("        __tracebackhide__ = True\n", "")))
