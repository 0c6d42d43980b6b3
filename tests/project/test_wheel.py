"""What the wheel holds: the package with the suites and cassettes inside it; and that it asks for all that it imports.

That an installed wheel works is shown by `make wheel-test` (tests/wheel), in an environment of its own.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.laws.import_graph import runtime_imports

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: What a distribution is imported as, where that is not its own name.
IMPORTED_AS = {"jsonschema-rs": "jsonschema_rs", "pytest-xdist": "xdist", "pyyaml": "yaml", "tomli-w": "tomli_w", "vcrpy": "vcr"}
MEGABYTE = 1 << 20
DATA = ROOT / "harness" / "codex_replay" / "protocol" / "data"
PACKED = sorted([*DATA.glob("*/schema*/"), *DATA.glob("*/cassettes/")])


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


def files(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by their relative names."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def unpacked(wheel: zipfile.ZipFile, name: str) -> dict[str, bytes]:
    """Return the files of an archive in the wheel by their names."""
    with zipfile.ZipFile(io.BytesIO(wheel.read(name))) as archive:
        return {each: archive.read(each) for each in archive.namelist()}


def test_its_suites_and_cassettes_are_those_of_the_checkout(wheel: zipfile.ZipFile) -> None:
    inside = {
        name.removeprefix("codex_replay/packaged/") for name in wheel.namelist() if name.startswith("codex_replay/packaged/")
    }
    assert len(inside) > 100
    contract = {name.removeprefix("docs/") for name in tracked("docs/contract")}
    assert inside == tracked("suites") | contract | {"cassettes.wheel.zip"}
    assert unpacked(wheel, "codex_replay/packaged/cassettes.wheel.zip") == files(ROOT / "cassettes")


def test_its_schema_files_and_cassettes_of_versions_are_those_of_the_checkout(wheel: zipfile.ZipFile) -> None:
    archives = [name for name in wheel.namelist() if "/data/" in name and name.endswith(".wheel.zip")]
    assert sorted(archives) == sorted(f"{folder.relative_to(ROOT / 'harness')}.wheel.zip" for folder in PACKED)
    for name in archives:
        assert unpacked(wheel, name) == files(ROOT / "harness" / name.removesuffix(".wheel.zip"))


def test_it_installs_few_files(wheel: zipfile.ZipFile) -> None:
    """pytest reads the list of them at the start of each run of each user; pip adds a line for each compiled module."""
    modules = sum(name.endswith(".py") for name in wheel.namelist())
    assert len(wheel.namelist()) - modules <= 82
    assert len(wheel.namelist()) + modules <= 1400


def test_it_takes_no_top_level_name_but_its_own(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.startswith("codex_replay-")} == {"codex_replay", "codex_fakes"}


def test_it_carries_no_broken_proxy_and_no_measurement_of_them(wheel: zipfile.ZipFile) -> None:
    assert [name for name in wheel.namelist() if re.search(r"strength|proxy_variants|wrong_|(^|/)tests/", name)] == []
    assert [name for name in wheel.namelist() if b"proxy_variants" in wheel.read(name)] == []


def test_no_file_of_the_package_is_left_out(wheel: zipfile.ZipFile) -> None:
    packed = {str(path.relative_to(ROOT)) for folder in PACKED for path in folder.rglob("*")}
    modules = {name.partition("/")[2] for folder in ("harness", "fake_server") for name in tracked(folder) - packed}
    assert modules - set(wheel.namelist()) == {"bin/fake-codex"}
    (script,) = (name for name in wheel.namelist() if name.endswith(".data/scripts/fake-codex"))
    assert wheel.read(script) == (ROOT / "fake_server" / "bin" / "fake-codex").read_bytes()


def test_it_is_small(wheel: zipfile.ZipFile) -> None:
    assert wheel.filename is not None
    assert Path(wheel.filename).stat().st_size < 12_000_000
    assert sum(info.file_size for info in wheel.infolist()) < 40 * MEGABYTE


def imported(source: str) -> set[str]:
    """Return the top-level names that a module imports, wherever the import stands, but those for type checkers."""
    return {name.split(".")[0] for name in runtime_imports(source)}


#: The one module of each optional extra, and what it may import besides.
EXTRAS = {"codex_replay/snapshot.py": PROJECT["optional-dependencies"]["snapshot"][0].partition(">")[:1]}


def undeclared(sources: dict[str, str]) -> list[str]:
    names = [re.split(r"[^A-Za-z0-9_.-]", requirement)[0].lower() for requirement in PROJECT["dependencies"]]
    known = (
        {IMPORTED_AS.get(name, name) for name in names} | {"codex_replay", "codex_fakes", "suites"} | set(sys.stdlib_module_names)
    )
    known.add("_pytest")
    return sorted(
        f"{path}: {name}"
        for path, text in sources.items()
        for name in imported(text) - known
        if not any(name in extra for module, extra in EXTRAS.items() if path.endswith(module))
    )


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
    assert undeclared({"codex_replay/x.py": "import syrupy"}) == ["codex_replay/x.py: syrupy"]
