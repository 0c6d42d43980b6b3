"""The laws of the architecture that can be computed: who imports whom, and what the start-up path may load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOORS = {
    "harness.core": 1,
    "harness.protocol": 2,
    "harness.shell": 3,
    "harness.report": 4,
    "harness.plugin": 5,
    "harness.cli": 6,
}
IMPURE = {
    "socket",
    "asyncio",
    "subprocess",
    "threading",
    "time",
    "selectors",
    "select",
    "http",
    "urllib.request",
    "tempfile",
    "signal",
}


def modules(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path, source: str | None = None) -> set[str]:
    """Every module that a file imports, wherever the import stands; `if TYPE_CHECKING` blocks load nothing and are left out."""
    tree = ast.parse(source if source is not None else path.read_text())
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def floor(module: str) -> int | None:
    return next((number for name, number in FLOORS.items() if module == name or module.startswith(name + ".")), None)


def upward(path: Path, found: set[str]) -> list[str]:
    own = floor(name_of(path))
    return sorted(m for m in found if own is not None and (other := floor(m)) is not None and other > own)


@pytest.mark.parametrize("path", modules("harness"), ids=name_of)
def test_no_floor_looks_up(path: Path) -> None:
    assert upward(path, imports(path)) == []


@pytest.mark.parametrize("path", modules("harness"), ids=name_of)
def test_the_harness_never_imports_a_fake_or_a_suite(path: Path) -> None:
    assert [m for m in imports(path) if m.split(".")[0] in ("fake_server", "suites", "tests")] == []


@pytest.mark.parametrize("path", modules("harness/core", "harness/protocol"), ids=name_of)
def test_core_and_protocol_are_pure(path: Path) -> None:
    assert sorted(imports(path) & IMPURE) == []


@pytest.mark.parametrize("path", modules("fake_server"), ids=name_of)
def test_the_fakes_stand_on_the_pure_floors_and_the_cassette_file_alone(path: Path) -> None:
    found = [m for m in imports(path) if m.startswith("harness.")]
    assert [m for m in found if floor(m) not in (1, 2) and not m.startswith("harness.shell.cassette")] == ["harness.shell"] * (
        "harness.shell" in found
    )


@pytest.mark.parametrize("path", modules("harness/reference"), ids=name_of)
def test_a_reference_shares_nothing_with_what_judges_it(path: Path) -> None:
    assert [
        m for m in imports(path) if m.startswith(("harness.", "fake_server", "suites")) and not m.startswith("harness.reference")
    ] == []


@pytest.mark.parametrize("path", modules("suites"), ids=name_of)
def test_suites_know_the_plugin_alone(path: Path) -> None:
    assert [m for m in imports(path) if m.startswith(("harness.", "fake_server")) and not m.startswith("harness.plugin")] == []


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        (
            "harness/core/x.py",
            "from harness.shell.cassette import CassetteReader",
            ["harness.shell.cassette", "harness.shell.cassette.CassetteReader"],
        ),
        ("harness/protocol/x.py", "def f():\n    import harness.cli.main", ["harness.cli.main"]),
        ("harness/shell/x.py", "from harness.core import frames", []),
    ],
)
def test_the_law_itself_sees_an_upward_import(module: str, source: str, wrong: list[str]) -> None:
    assert upward(ROOT / module, imports(ROOT / module, source)) == wrong


SLOW = {
    "json",
    "re",
    "dataclasses",
    "typing",
    "enum",
    "collections",
    "functools",
    "asyncio",
    "argparse",
    "inspect",
    "os",
    "logging",
}


def loaded_by(code: str, said: bytes = b"") -> list[str]:
    """What an interpreter started as `fake-codex app-server` starts (isolated, without site) loads for `code`."""
    code = (
        f"import sys; sys.path.append({str(ROOT)!r}); before = set(sys.modules)\n{code}\n"
        "print(*sorted(set(sys.modules) - before), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code], input=said, capture_output=True, check=True)
    return run.stderr.decode().split()


def test_the_start_up_path_of_fake_codex_loads_nothing_slow() -> None:
    loaded = loaded_by("import fake_server.fake_codex, fake_server.app_server")
    assert "harness.core.replay" in loaded
    assert sorted(SLOW & set(loaded)) == []
    assert [
        m for m in loaded if not m.startswith(("harness", "fake_server")) and m not in ("__future__", "_json", "select")
    ] == []


INITIALIZE = b'{"id":7,"method":"initialize","params":{"clientInfo":{"name":"another","title":"x","version":"9"}}}\n'


@pytest.mark.parametrize(("level", "rules"), [("method", []), ("exact", ["re", "typing"])])
def test_a_client_of_another_name_costs_no_rules(level: str, rules: list[str]) -> None:
    """Where the content is compared they are needed, which also shows that this test would see them."""
    cassette = ROOT / "cassettes" / "app_server" / "test_v2" / "text_turn.ndjson"
    environ = {"FAKE_CODEX_CASSETTE": str(cassette), "FAKE_CODEX_MATCH": level}
    loaded = loaded_by(f"from fake_server.app_server import AppServer\nAppServer({environ!r}).run()", INITIALIZE)
    assert "harness.core.replay" in loaded
    assert sorted({"re", "typing"} & set(loaded)) == rules
