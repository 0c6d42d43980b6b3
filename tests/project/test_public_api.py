"""The public API: each name resolves, is typed and documented; importing the package is free; the docs use nothing else."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import codex_replay
from tests.project.documents import ROOT, Document

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("tutorials/*.md"))]
#: What a document may import of ours. Whoever writes a case for our suites has their helpers beside it.
PUBLIC_MODULES = {"codex_replay", "codex_replay.snapshot", "codex_replay.suites"}
OURS = {"codex_replay", "codex_fakes"}


@pytest.mark.parametrize("name", codex_replay.__all__)
def test_every_public_name_resolves_and_is_described(name: str) -> None:
    value = getattr(codex_replay, name)
    assert value.__doc__
    assert name in dir(codex_replay)
    rows = [line.split("|")[1] for line in (ROOT / "docs" / "api.md").read_text().splitlines() if line.startswith("| `")]
    assert name in re.findall(r"`(\w+)", " ".join(rows))


def test_the_page_names_nothing_that_is_not_public() -> None:
    rows = [line.split("|")[1] for line in (ROOT / "docs" / "api.md").read_text().splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`(\w+)", " ".join(rows))) <= set(codex_replay.__all__)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        codex_replay.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_only_public_names_are_listed() -> None:
    assert dir(codex_replay) == codex_replay.__all__


def test_the_types_are_those_of_the_names() -> None:
    """`__init__.pyi` is written by hand, and a checker believes it."""
    stub = ast.parse((ROOT / "harness" / "codex_replay" / "__init__.pyi").read_text())
    typed = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    places = {name: (f"codex_replay.{module}", attribute) for name, (module, attribute) in codex_replay._PLACES.items()}
    assert typed == places
    (listed,) = (node.value for node in stub.body if isinstance(node, ast.Assign))
    assert sorted(ast.literal_eval(listed)) == codex_replay.__all__


def test_a_type_checker_sees_the_names(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from codex_replay import lint, normalise, nonsense\nlint(1)\nnormalise('a')[0].label + 1\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), "mine.py"],
        cwd=tmp_path, env={"MYPYPATH": f"{ROOT}/harness", "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert re.findall(r"mine\.py:(\d+): error: .*\[([\w-]+)\]", done.stdout) == [
        ("1", "attr-defined"),
        ("2", "arg-type"),
        ("3", "operator"),
    ], done.stdout + done.stderr


def loaded_by(code: str) -> set[str]:
    before = f"import sys; sys.path.append({str(ROOT / 'harness')!r}); before = set(sys.modules)"
    code = f"{before}\n{code}\nprint(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_else() -> None:
    """Every pytest run and every start of fake-codex imports it."""
    assert loaded_by("import codex_replay; codex_replay.__all__") == {"codex_replay"}


def test_the_reader_of_the_data_comes_with_the_first_table() -> None:
    assert "codex_replay.shell.files.version_data" not in loaded_by("import codex_replay.protocol.data_tables")
    loaded = loaded_by("from codex_replay.protocol.data_tables import load; load('causality')")
    assert "codex_replay.shell.files.version_data" in loaded


def test_a_name_imports_only_what_it_needs() -> None:
    loaded = loaded_by("from codex_replay import Frame")
    assert "codex_replay.core.cassette.frames" in loaded
    assert not {"json", "typing", "pytest", "jsonschema_rs"} & loaded


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_documents_import_the_public_api_alone(path: Path) -> None:
    assert [wrong for block in Document.read(path).blocks if block.language == "python" for wrong in private(block.text)] == []


def private(source: str) -> list[str]:
    """Return what a block imports of ours that is not public."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [(node.module or "", alias.name) for alias in node.names]
        else:
            continue
        for module, name in modules:
            known = module in PUBLIC_MODULES and (not name or module != "codex_replay" or name in codex_replay.__all__)
            if module.partition(".")[0] in OURS and not known:
                found.append(f"{module} {name}".strip())
    return found


def test_a_document_that_imports_something_private_is_found() -> None:
    source = (
        "import json, codex_replay\nfrom codex_replay import lint, cli\nfrom codex_replay.snapshot import ConversationSnapshot\n"
    )
    assert private(source) == ["codex_replay cli"]
    assert private("from codex_replay.shell.cassettes.file import CassetteReader\nimport codex_fakes") == [
        "codex_replay.shell.cassettes.file CassetteReader",
        "codex_fakes",
    ]
