"""A suite and the reference that passes it share no builder, parser or table: they meet only in core and the bundle.

The closures are computed from the sources: every import counts, wherever it stands, and those of the packages above a module too.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.laws.import_graph import import_statements

ROOT = Path(__file__).resolve().parents[2]
OURS = ("codex_replay", "codex_fakes", "suites", "tests")
#: Where their packages lie, below the root.
SOURCE_ROOTS = {"codex_replay": "harness", "codex_fakes": "fake_server", "suites": ".", "tests": "."}
#: What both may read besides core: the bundle, which is what Codex says of itself, and the readers that it needs.
BUNDLE = {
    "codex_replay.protocol.schema.bundle",
    "codex_replay.protocol.data_tables",
    "codex_replay.protocol.versions",
    "codex_replay.shell.files.version_data",
    "codex_replay.shell.files.folder",
    "codex_replay.shell.files.archive",
}
#: Packages that hold nothing, and are imported with what lies in them.
PAGES = {
    "codex_replay",
    "codex_replay.core",
    "codex_replay.protocol",
    "codex_replay.protocol.schema",
    "codex_replay.shell",
    "codex_replay.shell.files",
}
PAIRS = {
    "proxy": ("suites.proxy", "codex_replay.reference.proxy"),
    "proxy-variants": ("suites.proxy", "tests.strength.proxy_variants"),
    "lite-client": ("suites.lite_client", "codex_replay.reference.lite_client"),
    "editor-client": ("suites.editor_client", "codex_replay.reference.editor_client"),
}


def place(root: Path, module: str) -> Path:
    parts = module.split(".")
    return root.joinpath(SOURCE_ROOTS.get(parts[0], "."), *parts)


def source_of(root: Path, module: str) -> Path | None:
    """The file of a module, if it is one of ours."""
    base = place(root, module)
    return next((path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()), None)


def imported(root: Path, module: str, path: Path) -> set[str]:
    """What a module imports, and the packages above it."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    above = {module.rsplit(".", i)[0] for i in range(1, module.count(".") + 1)}
    return above | _imports(package, path.read_text(encoding="utf-8"))


@cache
def _imports(package: str, source: str) -> set[str]:
    """What a module of a package imports. Every closure asks for most modules again."""
    found: set[str] = set()
    for node, typing in import_statements(source):
        if typing:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return found


def closure(root: Path, start: str) -> set[str]:
    """All modules of ours that a package (every module in it) or a module needs, itself included."""
    folder = place(root, start)
    base = root / SOURCE_ROOTS[start.split(".")[0]]
    waiting = [start] + [".".join(path.relative_to(base).with_suffix("").parts) for path in sorted(folder.rglob("*.py"))]
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
    return {module for module in both if not module.startswith("codex_replay.core.")} - BUNDLE - PAGES


@pytest.mark.parametrize("pair", PAIRS.values(), ids=list(PAIRS))
def test_suite_and_reference_meet_only_in_core_and_the_bundle(pair: tuple[str, str]) -> None:
    suite, reference = pair
    assert meeting(ROOT, suite, reference) == set()


@pytest.mark.parametrize("module", ["oracle", "grammar"])
def test_the_oracle_of_tool_calls_needs_nothing_of_ours(module: str) -> None:
    """What must come of a text is written from the contract: no parser, suite or plugin is behind it."""
    start = f"tests.strength.tool_calls.{module}"
    assert closure(ROOT, start) == {start, "tests.strength.tool_calls"}
    path = source_of(ROOT, start)
    assert path is not None
    outside = {name.partition(".")[0] for name in imported(ROOT, start, path)} - {"tests"}
    assert outside <= sys.stdlib_module_names | {"__future__"}


def test_an_oracle_that_uses_a_parser_is_found(tmp_path: Path) -> None:
    files = {
        "tests/strength/tool_calls/oracle.py": "def judge():\n    from codex_replay.reference.proxy import parser\n",
        "harness/codex_replay/reference/proxy/parser.py": "",
    }
    assert "codex_replay.reference.proxy.parser" in closure(planted(tmp_path, files), "tests.strength.tool_calls.oracle")


#: Suite, or the plugin's package for it -> the fake that it judges.
JUDGED = [
    ("suites.app_server", "codex_fakes"),
    ("suites.backend", "codex_fakes.backend"),
    ("codex_replay.plugin.app_server", "codex_fakes"),
    ("codex_replay.plugin.backend", "codex_fakes.backend"),
    ("codex_replay.plugin.backend", "codex_fakes.model"),
]
#: What both may read besides core and the bundle, and why.
SHARED = {
    "codex_replay.shell.cassettes": "a package that holds nothing",
    "codex_replay.shell.cassettes.file": "the reader of the one file format (law 3)",
    "codex_replay.shell.cassettes.claim": "which file the writer of that format gets; it knows no protocol",
    "codex_replay.protocol.responses": "a package that holds nothing",
}


@pytest.mark.parametrize("pair", JUDGED, ids="-".join)
def test_suite_and_fake_meet_only_in_core_the_bundle_and_the_cassette(pair: tuple[str, str]) -> None:
    assert meeting(ROOT, *pair) - SHARED.keys() == set()
    assert any(name.startswith("codex_fakes.") for name in closure(ROOT, pair[1]))


def test_what_suites_and_fakes_may_share_is_shared() -> None:
    """A row that no pair needs goes."""
    assert set().union(*(meeting(ROOT, *pair) for pair in JUDGED)) == SHARED.keys()


def test_a_module_that_suite_and_fake_share_is_found(tmp_path: Path) -> None:
    files = {
        "suites/backend/test_it.py": "def test():\n    from codex_replay.protocol.responses.steps import STEPS\n",
        "harness/codex_replay/protocol/responses/steps.py": "",
        "harness/codex_replay/protocol/responses/__init__.py": "",
        "fake_server/codex_fakes/backend/server.py": "from codex_replay.protocol.responses import steps\n",
        "fake_server/codex_fakes/backend/__init__.py": "",
    }
    found = meeting(planted(tmp_path, files), "suites.backend", "codex_fakes.backend") - SHARED.keys()
    assert found == {"codex_replay.protocol.responses.steps"}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=list(PAIRS))
def test_the_closures_are_no_empty_ones(pair: tuple[str, str]) -> None:
    """Each has the modules of its own side; a reference knows none of the plugin, and no suite a reference."""
    judge, judged = (closure(ROOT, start) for start in pair)
    assert any(module.startswith("codex_replay.plugin.") for module in judge)
    assert len([module for module in judge if module.startswith(pair[0])]) > 5
    assert len([module for module in judged if module.startswith(pair[1])]) > 3
    assert [module for module in judge if module.startswith("codex_replay.reference")] == []
    assert [module for module in judged if module.startswith(("codex_replay.plugin", "suites", "codex_fakes"))] == []


@pytest.mark.parametrize(
    "module",
    ["codex_replay.reference.proxy.__main__", "codex_replay.plugin.proxy.fixture", "suites.proxy.replies.test_tool_calls"],
)
def test_what_is_loaded_is_in_the_closure(module: str) -> None:
    """The closure leaves nothing out that Python really imports."""
    code = f"import {module}, sys, json; print(json.dumps([name for name in sys.modules if name.split('.')[0] in {OURS!r}]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    loaded = set(json.loads(done.stdout))
    assert module in loaded
    assert loaded - closure(ROOT, module) == set()


BROKEN = {
    "the-suite-uses-the-references-parser": {
        "suites/proxy/test_it.py": "from codex_replay.plugin.judge import held\n",
        "harness/codex_replay/plugin/judge.py": (
            "def held():\n    from codex_replay.reference.proxy import parser\n    return parser\n"
        ),
        "harness/codex_replay/reference/proxy/__init__.py": "",
        "harness/codex_replay/reference/proxy/parser.py": "",
    },
    "both-use-one-table": {
        "suites/proxy/test_it.py": "import codex_replay.plugin.judge\n",
        "harness/codex_replay/plugin/judge.py": "from codex_replay.protocol import instructions\n",
        "harness/codex_replay/protocol/instructions.py": "",
        "harness/codex_replay/reference/proxy/app.py": "from ...protocol.instructions import LINES\n",
    },
    "by-a-package-above": {
        "suites/proxy/test_it.py": "from codex_replay.plugin import judge\n",
        "harness/codex_replay/plugin/__init__.py": "from codex_replay.reference import shared\n",
        "harness/codex_replay/plugin/judge.py": "",
        "harness/codex_replay/reference/shared.py": "",
        "harness/codex_replay/reference/proxy/app.py": "import codex_replay.reference.shared\n",
    },
}
HONEST = {
    "suites/proxy/test_it.py": "from codex_replay.plugin.judge import held\n",
    "harness/codex_replay/plugin/judge.py": (
        "from codex_replay.core.wire import sse\nfrom codex_replay.protocol.schema.bundle import load\n"
    ),
    "harness/codex_replay/core/wire/sse.py": "",
    "harness/codex_replay/protocol/schema/bundle.py": "",
    "harness/codex_replay/reference/proxy/app.py": (
        "from codex_replay.core.wire.sse import Decoder\nfrom codex_replay.protocol.schema import bundle\n"
    ),
}


def planted(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for folder in (
        "harness/codex_replay",
        "harness/codex_replay/plugin",
        "harness/codex_replay/protocol",
        "harness/codex_replay/core",
        "suites",
        "suites/proxy",
    ):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "__init__.py").touch()
    return root


@pytest.mark.parametrize("files", BROKEN.values(), ids=list(BROKEN))
def test_a_shared_module_is_found(files: dict[str, str], tmp_path: Path) -> None:
    assert meeting(planted(tmp_path, files), "suites.proxy", "codex_replay.reference.proxy") != set()


def test_core_and_the_bundle_may_be_shared(tmp_path: Path) -> None:
    assert meeting(planted(tmp_path, HONEST), "suites.proxy", "codex_replay.reference.proxy") == set()
