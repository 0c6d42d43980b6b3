"""A suite and the reference that passes it share no builder, parser or table: they meet only in core and the bundle.

The closures are computed from the sources: every import counts, wherever it stands, and those of the packages above a module too.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ("harness", "fake_server", "suites")
#: The one thing besides core that both may read: what Codex says of itself.
BUNDLE = {"harness.protocol.bundle", "harness.protocol.schema_files"}
#: Packages that hold nothing, and are imported with what lies in them.
PAGES = {"harness", "harness.core", "harness.protocol"}
PAIRS = {
    "proxy": ("suites.proxy", "harness.reference.proxy"),
    "proxy-variants": ("suites.proxy", "harness.reference.proxy_variants"),
    "lite-client": ("suites.lite_client", "harness.reference.lite_client"),
    "editor-client": ("suites.editor_client", "harness.reference.editor_client"),
}


def source_of(root: Path, module: str) -> Path | None:
    """The file of a module, if it is one of ours."""
    base = root.joinpath(*module.split("."))
    return next((path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()), None)


def imported(root: Path, module: str, path: Path) -> set[str]:
    """What a module imports, and the packages above it."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = {module.rsplit(".", i)[0] for i in range(1, module.count(".") + 1)}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unread = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for part in node.body
        for inner in ast.walk(part)
    }
    for node in ast.walk(tree):
        if id(node) in unread:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return found


def closure(root: Path, start: str) -> set[str]:
    """All modules of ours that a package (every module in it) or a module needs, itself included."""
    folder = root.joinpath(*start.split("."))
    waiting = [start] + [".".join(path.relative_to(root).with_suffix("").parts) for path in sorted(folder.rglob("*.py"))]
    seen: set[str] = set()
    while waiting:
        module = waiting.pop().removesuffix(".__init__")
        path = source_of(root, module)
        if module.split(".")[0] not in OURS or module in seen or path is None:
            continue
        seen.add(module)
        waiting += imported(root, module, path)
    return seen


def meeting(root: Path, suite: str, reference: str) -> set[str]:
    """Where two closures meet beyond what is allowed."""
    both = closure(root, suite) & closure(root, reference)
    return {module for module in both if not module.startswith("harness.core.")} - BUNDLE - PAGES


@pytest.mark.parametrize("pair", PAIRS.values(), ids=list(PAIRS))
def test_suite_and_reference_meet_only_in_core_and_the_bundle(pair: tuple[str, str]) -> None:
    suite, reference = pair
    assert meeting(ROOT, suite, reference) == set()


@pytest.mark.parametrize("pair", PAIRS.values(), ids=list(PAIRS))
def test_the_closures_are_no_empty_ones(pair: tuple[str, str]) -> None:
    """Each has the modules of its own side; a reference knows none of the plugin, and no suite a reference."""
    judge, judged = (closure(ROOT, start) for start in pair)
    assert any(module.startswith("harness.plugin.") for module in judge)
    assert len([module for module in judge if module.startswith(pair[0])]) > 5
    assert len([module for module in judged if module.startswith(pair[1])]) > 3
    assert [module for module in judge if module.startswith("harness.reference")] == []
    assert [module for module in judged if module.startswith(("harness.plugin", "suites", "fake_server"))] == []


@pytest.mark.parametrize("module", ["harness.reference.proxy.__main__", "harness.plugin.proxy", "suites.proxy.test_tool_calls"])
def test_what_is_loaded_is_in_the_closure(module: str) -> None:
    """The closure leaves nothing out that Python really imports."""
    code = f"import {module}, sys, json; print(json.dumps([name for name in sys.modules if name.split('.')[0] in {OURS!r}]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    loaded = set(json.loads(done.stdout))
    assert module in loaded
    assert loaded - closure(ROOT, module) == set()


BROKEN = {
    "the-suite-uses-the-references-parser": {
        "suites/proxy/test_it.py": "from harness.plugin.judge import held\n",
        "harness/plugin/judge.py": "def held():\n    from harness.reference.proxy import parser\n    return parser\n",
        "harness/reference/proxy/__init__.py": "",
        "harness/reference/proxy/parser.py": "",
    },
    "both-use-one-table": {
        "suites/proxy/test_it.py": "import harness.plugin.judge\n",
        "harness/plugin/judge.py": "from harness.protocol import instructions\n",
        "harness/protocol/instructions.py": "",
        "harness/reference/proxy/app.py": "from ...protocol.instructions import LINES\n",
    },
    "by-a-package-above": {
        "suites/proxy/test_it.py": "from harness.plugin import judge\n",
        "harness/plugin/__init__.py": "from harness.reference import shared\n",
        "harness/plugin/judge.py": "",
        "harness/reference/shared.py": "",
        "harness/reference/proxy/app.py": "import harness.reference.shared\n",
    },
}
HONEST = {
    "suites/proxy/test_it.py": "from harness.plugin.judge import held\n",
    "harness/plugin/judge.py": "from harness.core import sse\nfrom harness.protocol.bundle import load\n",
    "harness/core/sse.py": "",
    "harness/protocol/bundle.py": "",
    "harness/reference/proxy/app.py": "from harness.core.sse import Decoder\nfrom harness.protocol import bundle\n",
}


def planted(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for folder in ("harness", "harness/plugin", "harness/protocol", "harness/core", "suites", "suites/proxy"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "__init__.py").touch()
    return root


@pytest.mark.parametrize("files", BROKEN.values(), ids=list(BROKEN))
def test_a_shared_module_is_found(files: dict[str, str], tmp_path: Path) -> None:
    assert meeting(planted(tmp_path, files), "suites.proxy", "harness.reference.proxy") != set()


def test_core_and_the_bundle_may_be_shared(tmp_path: Path) -> None:
    assert meeting(planted(tmp_path, HONEST), "suites.proxy", "harness.reference.proxy") == set()
