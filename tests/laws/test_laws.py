"""The laws of the architecture that can be computed: who imports whom, and what the start-up path may load."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import pytest

from tests.laws.import_graph import runtime_imports

ROOT = Path(__file__).resolve().parents[2]
#: Folders that hold packages and are none themselves.
SOURCE_ROOTS = ("harness", "fake_server")
FLOORS = {
    "codex_replay.core": 1,
    "codex_replay.protocol": 2,
    "codex_replay.shell": 3,
    "codex_replay.report": 4,
    "codex_replay.plugin": 5,
    "codex_replay.cli": 6,
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
    "os",
    "pathlib",
    "io",
    "shutil",
    "glob",
    "posix",
}

#: As many modules as one look takes in.
MOST_MODULES = 20


def full_folders(root: Path) -> list[str]:
    """Return the folders below `root` (itself included) that hold more than `MOST_MODULES` modules, `__init__.py` left out."""
    counts = Counter(path.parent for path in root.rglob("*.py") if path.name != "__init__.py")
    return [f"{folder}: {count} modules" for folder, count in sorted(counts.items()) if count > MOST_MODULES]


def modules(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[1:] if parts[0] in SOURCE_ROOTS else parts).removesuffix(".__init__")


def imports(path: Path, source: str | None = None) -> set[str]:
    """Return every module that a file imports when it runs."""
    return runtime_imports(source if source is not None else path.read_text())


def floor(module: str) -> int | None:
    return next((number for name, number in FLOORS.items() if module == name or module.startswith(name + ".")), None)


def upward(path: Path, found: set[str]) -> list[str]:
    own = floor(name_of(path))
    return sorted(m for m in found if own is not None and (other := floor(m)) is not None and other > own)


def breaches(paths: Iterable[Path], wrong: Callable[[Path], Collection[str]]) -> dict[str, Collection[str]]:
    """Return module -> what is wrong with it, of the modules in which something is; a case for each module would take longer."""
    return {name_of(path): found for path in paths if (found := wrong(path))}


def test_no_floor_looks_up() -> None:
    assert breaches(modules("harness"), lambda path: upward(path, imports(path))) == {}


def test_the_harness_never_imports_a_fake_or_a_suite() -> None:
    banned = ("codex_fakes", "suites", "tests")
    assert breaches(modules("harness"), lambda path: [m for m in imports(path) if m.split(".")[0] in banned]) == {}


def test_a_breach_is_reported_with_its_module() -> None:
    here = Path(__file__)
    assert breaches([here, ROOT / "bench" / "__main__.py"], lambda path: imports(path) & {"ast"}) == {name_of(here): {"ast"}}


def impure(source: str) -> list[str]:
    """Return what a source does besides computing: the impure modules that it imports, and `open`."""
    names = {name for name in imports(Path(), source) if name in IMPURE or name.partition(".")[0] in IMPURE - {"http"}}
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return sorted(names | {call.id for call in calls if isinstance(call, ast.Name) and call.id in ("open", "print", "input")})


def test_core_and_protocol_are_pure() -> None:
    pure = modules("harness/codex_replay/core", "harness/codex_replay/protocol")
    assert breaches(pure, lambda path: impure(path.read_text())) == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import os", ["os"]),
        ("from os.path import basename", ["os.path", "os.path.basename"]),
        ("def f():\n    from pathlib import Path", ["pathlib", "pathlib.Path"]),
        ("import io", ["io"]),
        ("def f(name):\n    with open(name) as file:\n        return file.read()", ["open"]),
        ("from urllib.parse import urlsplit", []),
        ("def f(thread):\n    thread.open()", []),
    ],
)
def test_the_law_itself_sees_what_is_impure(source: str, found: list[str]) -> None:
    assert impure(source) == found


#: A number that can be a Codex version. Addresses such as 127.0.0.1 have four parts; our own programs are at 0.1.0 and 1.0.0.
VERSION = re.compile(r"(?<![\d.])0\.\d{2,}\.\d+(?![\d.])")
#: Module -> why it may name a version.
NAMES_A_VERSION = {
    "codex_replay.protocol.versions": "the one place",
    "codex_replay.reference.lite_client.client": "a subject claims to be a version; it shares nothing with what judges it",
}


def versions_in(source: str) -> list[str]:
    """Return the string constants of a source that have a version number in them, docstrings left out."""
    nodes = list(ast.walk(ast.parse(source)))
    scopes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    firsts = [node.body[0] for node in nodes if isinstance(node, scopes) and node.body]
    texts = {id(first.value) for first in firsts if isinstance(first, ast.Expr)}
    strings = (node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [str(node.value) for node in strings if id(node) not in texts and VERSION.search(str(node.value))]


def test_no_module_but_one_names_a_version() -> None:
    """Versions are in protocol/versions, and what differs between them is data (law 6)."""
    found = breaches(modules("harness/codex_replay", "fake_server/codex_fakes"), lambda path: versions_in(path.read_text()))
    assert {name: texts for name, texts in found.items() if name not in NAMES_A_VERSION} == {}
    assert sorted(found) == sorted(NAMES_A_VERSION)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('VERSION = "0.92.0"', ["0.92.0"]),
        ('def f(name):\n    """As in 0.92.0."""\n    return f"{name}/0.169.0 (x)"', ["/0.169.0 (x)"]),
        ('TABLE = (("0.117.0", {}),)', ["0.117.0"]),
        ('"""Codex 0.92.0."""  # 0.92.0\nURL, MINE = "http://127.0.0.1:9", "0.1.0"', []),
        ('PROFILE = "works-on-0.92"', []),
    ],
)
def test_the_law_itself_sees_a_version(source: str, found: list[str]) -> None:
    assert versions_in(source) == found


def test_the_fakes_stand_on_the_pure_floors_and_the_cassette_file_alone() -> None:
    def wrong(path: Path) -> list[str]:
        found = [m for m in imports(path) if m.startswith("codex_replay.") and floor(m) not in (1, 2)]
        return [m for m in found if m != "codex_replay.shell" and not m.startswith("codex_replay.shell.cassettes.file")]

    assert breaches(modules("fake_server"), wrong) == {}


def test_a_reference_shares_nothing_with_what_judges_it() -> None:
    def wrong(path: Path) -> list[str]:
        found = [m for m in imports(path) if m.startswith(("codex_replay.", "codex_fakes", "suites"))]
        return [m for m in found if not m.startswith("codex_replay.reference")]

    assert breaches(modules("harness/codex_replay/reference"), wrong) == {}


def test_suites_know_the_plugin_alone() -> None:
    def wrong(path: Path) -> list[str]:
        found = [m for m in imports(path) if m.startswith(("codex_replay.", "codex_fakes"))]
        return [m for m in found if not m.startswith("codex_replay.plugin")]

    assert breaches(modules("suites"), wrong) == {}


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        (
            "harness/codex_replay/core/x.py",
            "from codex_replay.shell.cassettes.file import CassetteReader",
            ["codex_replay.shell.cassettes.file", "codex_replay.shell.cassettes.file.CassetteReader"],
        ),
        ("harness/codex_replay/protocol/x.py", "def f():\n    import codex_replay.cli.main", ["codex_replay.cli.main"]),
        ("harness/codex_replay/shell/x.py", "from codex_replay.core.cassette import frames", []),
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
        f"import sys; sys.path += {[str(ROOT / root) for root in SOURCE_ROOTS]!r}; before = set(sys.modules)\n{code}\n"
        "print(*sorted(set(sys.modules) - before), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code], input=said, capture_output=True, check=True)
    return run.stderr.decode().split()


def test_the_start_up_path_of_fake_codex_loads_nothing_slow() -> None:
    loaded = loaded_by("import codex_fakes.fake_codex, codex_fakes.replaying.app_server")
    assert "codex_replay.core.replay.track" in loaded
    assert sorted(SLOW & set(loaded)) == []
    assert [
        m for m in loaded if not m.startswith(("codex_replay", "codex_fakes")) and m not in ("__future__", "_json", "select")
    ] == []


INITIALIZE = b'{"id":7,"method":"initialize","params":{"clientInfo":{"name":"another","title":"x","version":"9"}}}\n'


@pytest.mark.parametrize(("level", "rules"), [("method", []), ("exact", ["re", "typing"])])
def test_a_client_of_another_name_costs_no_rules(level: str, rules: list[str]) -> None:
    """Where the content is compared they are needed, which also shows that this test would see them."""
    cassette = ROOT / "cassettes" / "app_server" / "test_v2" / "text_turn.ndjson"
    environ = {"FAKE_CODEX_CASSETTE": str(cassette), "FAKE_CODEX_MATCH": level}
    loaded = loaded_by(f"from codex_fakes.replaying.app_server import AppServer\nAppServer({environ!r}).run()", INITIALIZE)
    assert "codex_replay.core.replay.track" in loaded
    assert sorted({"re", "typing"} & set(loaded)) == rules


def shadowing(paths: Iterable[Path]) -> list[str]:
    """Return the modules whose name is a module of Python: pytest puts their folder on the path of every test."""
    return sorted(str(path) for path in paths if path.stem in sys.stdlib_module_names)


def test_no_module_of_the_tests_shadows_one_of_python() -> None:
    assert shadowing((ROOT / "tests").rglob("*.py")) == []
    assert shadowing([Path("tests/fuzz/http.py"), Path("tests/fuzz/http_wire.py")]) == ["tests/fuzz/http.py"]


def equal_names(paths: Iterable[Path]) -> list[str]:
    """Return the file names that several test modules have: pytest imports a module outside a package by its file name alone."""
    counts = Counter(path.name for path in paths if not path.with_name("__init__.py").exists())
    return sorted(name for name, count in counts.items() if count > 1)


def test_all_modules_of_the_tests_can_be_collected_in_one_run() -> None:
    assert equal_names((ROOT / "tests").rglob("test_*.py")) == []
    assert equal_names([Path("a/test_one.py"), Path("b/test_one.py"), Path("a/test_two.py")]) == ["test_one.py"]


@pytest.mark.parametrize("root", ["harness", "fake_server", "suites", "tests", "bench"])
def test_no_folder_is_too_full_to_be_read(root: str) -> None:
    assert full_folders(ROOT / root) == []


def test_a_full_folder_is_found(tmp_path: Path) -> None:
    for number in range(MOST_MODULES + 1):
        (tmp_path / f"m{number}.py").touch()
    assert full_folders(tmp_path) == [f"{tmp_path}: 21 modules"]


@pytest.mark.parametrize("suite", ["app_server", "proxy"])
def test_the_rooms_of_a_suite_have_no_module_in_common(suite: str) -> None:
    """A room is no part of the name of a case: two modules of one name would share their cassettes."""
    names = [path.name for path in (ROOT / "suites" / suite).rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)


#: Who may write to stderr: each does so through `core.redact.sentence`, or writes a text of its own that quotes nobody.
STDERR = {
    "cli/entry.py", "shell/process/guard.py", "shell/rpc/wire_tap.py", "shell/rpc/inserting.py",
    "exec/output.py", "exec/command.py", "backend/complaints.py", "stdio/loop.py", "stdio/byte_server.py", "fake_codex.py",
}  # fmt: skip


def test_sentences_for_people_are_written_in_few_places() -> None:
    """Everything else says what it has to say through them, so that no secret and no control character reaches a terminal."""
    found = set()
    for source in (ROOT / "harness" / "codex_replay", ROOT / "fake_server" / "codex_fakes"):
        for path in source.rglob("*.py"):
            text = path.read_text()
            # The reference clients are programs of their own, and share nothing with the library.
            if "reference" not in path.parts and re.search(r"sys\.stderr\.write|os\.write\(2|file=sys\.stderr", text):
                found.add(path.relative_to(source).as_posix())
    assert found - {"cli/record.py"} == STDERR
