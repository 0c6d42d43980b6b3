"""What the wheel holds: the package with the suites and cassettes inside it; and that it asks for all that it imports.

That an installed wheel works is shown by `make wheel-test` (tests/wheel), in an environment of its own.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: What a distribution is imported as, where that is not its own name.
IMPORTED_AS = {"jsonschema-rs": "jsonschema_rs", "pytest-xdist": "xdist", "pyyaml": "yaml", "vcrpy": "vcr"}
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    out = tmp_path_factory.mktemp("dist")
    hatchling = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    done = subprocess.run(hatchling, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (path,) = out.glob("*.whl")
    return zipfile.ZipFile(path)


def tracked(folder: str) -> set[str]:
    return {
        str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }


def test_its_suites_and_cassettes_are_those_of_the_checkout(wheel: zipfile.ZipFile) -> None:
    inside = {name.removeprefix("harness/packaged/") for name in wheel.namelist() if name.startswith("harness/packaged/")}
    assert len(inside) > 400
    assert inside == tracked("suites") | tracked("cassettes")


def test_it_takes_no_top_level_name_but_its_own(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.startswith("codex_replay-")} == {"harness", "fake_server"}


def test_no_file_of_the_package_is_left_out(wheel: zipfile.ZipFile) -> None:
    assert (tracked("harness") | tracked("fake_server")) - set(wheel.namelist()) == set()
    (script,) = (name for name in wheel.namelist() if name.endswith(".data/scripts/fake-codex"))
    assert wheel.read(script) == (ROOT / "fake_server" / "bin" / "fake-codex").read_bytes()


def test_it_is_small(wheel: zipfile.ZipFile) -> None:
    assert wheel.filename is not None
    assert Path(wheel.filename).stat().st_size < 8 * MEGABYTE
    assert sum(info.file_size for info in wheel.infolist()) < 40 * MEGABYTE


def imported(source: str) -> set[str]:
    """Return the top-level names that a module imports, wherever the import stands, but those for type checkers."""
    tree = ast.parse(source)
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
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def undeclared(sources: dict[str, str]) -> list[str]:
    names = [re.split(r"[^A-Za-z0-9_.-]", requirement)[0].lower() for requirement in PROJECT["dependencies"]]
    known = {IMPORTED_AS.get(name, name) for name in names} | {"harness", "fake_server", "suites"} | set(sys.stdlib_module_names)
    known.add("_pytest")
    return sorted(f"{path}: {name}" for path, text in sources.items() for name in imported(text) - known)


def test_every_import_is_declared_as_a_dependency() -> None:
    sources = {
        name: (ROOT / name).read_text()
        for folder in ("harness", "fake_server", "suites")
        for name in tracked(folder)
        if name.endswith(".py")
    }
    assert len(sources) > 150
    assert undeclared(sources) == []


def test_an_import_that_is_not_declared_is_found() -> None:
    assert undeclared({"x.py": "def f():\n    import hypothesis.strategies"}) == ["x.py: hypothesis"]
