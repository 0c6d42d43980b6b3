"""The laws inside the fakes: no import circle, packages that look down only, and what they may have of the library.

Imports for type checkers count as all others: a reader follows them too.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.laws.import_graph import PLACES, Graph, circles, graph, sources

STATE = ("stdio", "model", "scripted.state")
#: Package -> the packages that it may import besides itself.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "stdio": (),
    "model": (),
    "replaying": ("stdio",),
    "scripted.state": ("stdio", "model"),
    "scripted.turns": STATE,
    "scripted.methods": (*STATE, "scripted.turns"),
    "scripted": (*STATE, "scripted.turns", "scripted.methods"),
    "exec": (*STATE, "scripted.turns", "scripted.methods", "scripted"),
    "listening": ("stdio", "replaying", "scripted.state", "scripted"),
    "backend.rules": (),
    "backend.loop": (),
    "backend": ("model", "backend.rules", "backend.loop"),
    "fake_codex": ("stdio", "replaying", "scripted", "exec", "listening"),
}
#: What of the library the fakes may import: its two pure floors, and the reader and writer of cassettes.
LIBRARY = ("codex_replay.core", "codex_replay.protocol", "codex_replay.shell.cassettes.file")

FAKES = sources("codex_fakes")
KNOWN = {name for package in PLACES for name in sources(package)}


@cache
def imports() -> Graph:
    """Return what each module of the fakes imports."""
    return graph(FAKES, KNOWN)


def package(module: str) -> str:
    """Return the package of MAY_IMPORT that a module is in; "" for the top package itself."""
    inner = module.removeprefix("codex_fakes").removeprefix(".")
    return max((name for name in MAY_IMPORT if inner == name or inner.startswith(name + ".")), key=len, default="")


def upward(imports: Graph) -> list[str]:
    """Return each import of a package that the importing one may not know."""
    found = []
    for module, names in imports.items():
        own = package(module)
        for name in names:
            other = package(name) if name.startswith("codex_fakes.") else own
            if other != own and other not in MAY_IMPORT.get(own, ()):
                found.append(f"{module} imports {name}")
    return sorted(found)


def foreign(imports: Graph) -> list[str]:
    """Return each import of the library from outside `LIBRARY`, and each of the suites or tests."""
    found = []
    for module, names in imports.items():
        for name in names:
            top = name.split(".")[0]
            allowed = name == top or any(name == one or name.startswith(one + ".") for one in LIBRARY)
            if top in ("suites", "tests", "bench") or (top == "codex_replay" and not allowed):
                found.append(f"{module} imports {name}")
    return sorted(found)


def test_every_module_has_its_package() -> None:
    assert sorted(name for name in FAKES if not package(name)) == ["codex_fakes"]


def test_there_is_no_circle() -> None:
    assert circles(imports()) == []


def test_packages_look_down_only() -> None:
    assert upward(imports()) == []


def test_of_the_library_they_know_the_pure_floors_and_the_cassette_file() -> None:
    assert foreign(imports()) == []
    assert any(name.startswith(LIBRARY) for names in imports().values() for name in names)


@pytest.mark.parametrize(
    ("module", "line", "check"),
    [
        ("scripted.state.thread", "if TYPE_CHECKING:\n    from codex_fakes.scripted.turns.turn import Turn", circles),
        ("backend.exchange", "from codex_fakes.backend.connection import Connection", circles),
        ("backend.replay.replay", "def f():\n    import codex_fakes.backend.sessions", circles),
        ("scripted.state.model", "from codex_fakes.scripted.server import ScriptedServer", upward),
        ("scripted.turns.review", "from codex_fakes.scripted.methods.both import copy", upward),
        ("scripted.methods.v2", "if TYPE_CHECKING:\n    from codex_fakes.scripted.session import Session", upward),
        ("stdio.loop", "from codex_fakes import replaying", upward),
        ("model.faults", "from codex_fakes.backend.stream import stream", upward),
        ("backend.rules.body", "from codex_fakes.backend.sessions import Session", upward),
        ("stdio.capture", "from codex_replay.shell.cassettes import lint", foreign),
        ("exec.command", "from codex_replay.shell.codex import HermeticHome", foreign),
        ("backend.server", "from suites.backend import expected", foreign),
        ("backend.server", "from tests.laws import import_graph", foreign),
    ],
)
def test_a_planted_violation_is_found(module: str, line: str, check: object) -> None:
    name = f"codex_fakes.{module}"
    planted = graph({name: f"{FAKES[name]}\n{line}"}, KNOWN)
    assert check({**imports(), **planted})  # type: ignore[operator]
    assert not check(imports())  # type: ignore[operator]
