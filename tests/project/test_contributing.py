"""CONTRIBUTING's table of where a rule has its place: each place exists, and each package has a row."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.project.documents import ROOT

LIBRARY = ROOT / "harness" / "codex_replay"
TOP = ("docs", "fake_server", "suites", "tests")


def places(text: str) -> list[str]:
    table = text.partition("## Where to find a rule")[2].partition("\n## ")[0]
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ") and not line.startswith("| rule")]
    return [place for row in rows for place in re.findall(r"`([^`]+)`", row)]


PLACES = places((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


def full(place: str) -> Path:
    path = place.partition("::")[0]
    return (ROOT if path.partition("/")[0] in TOP else LIBRARY) / path


def wrong(place: str) -> str:
    """Return what is wrong with a place, "" if nothing is."""
    path, name = full(place), place.partition("::")[2]
    if "<version>" in place:
        return "" if list(ROOT.glob(str(path.relative_to(ROOT)).replace("<version>", "*"))) else "there is no such file"
    if not path.exists():
        return "there is no such file"
    defined = {node.name for node in ast.parse(path.read_text()).body if hasattr(node, "name")} if name else {""}
    return "" if name in defined else "the module does not define it"


@pytest.mark.parametrize("place", PLACES)
def test_each_place_exists(place: str) -> None:
    assert wrong(place) == ""


def test_each_package_has_a_place() -> None:
    folders = {path.parent for top in (LIBRARY, ROOT / "fake_server" / "codex_fakes") for path in top.rglob("__init__.py")}
    modules = {folder for folder in folders if any(path.name != "__init__.py" for path in folder.glob("*.py"))}
    named = {full(place) for place in PLACES}
    # A folder is a place for all below it, a module for its own package.
    bare = [folder for folder in modules if not any(folder == path.parent or path in (folder, *folder.parents) for path in named)]
    assert sorted(str(folder.relative_to(ROOT)) for folder in bare) == []


@pytest.mark.parametrize("place", ["core/wire/nothing.py", "core/wire/sse.py::nothing", "protocol/data/<version>/nothing.json"])
def test_a_place_that_is_not_there_is_found(place: str) -> None:
    table = f"## Where to find a rule\n| rule | place |\n|---|---|\n| a | `{place}` |\n\n## Next\n| b | `c` |\n"
    assert places(table) == [place]
    assert wrong(place) != ""
