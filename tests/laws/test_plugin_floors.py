"""Inside the plugin imports point one way too, those for types alone included: base, reporting, a package per subject, hooks."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.laws.import_graph import PLACES, circles, graph, sources

PLUGIN = "codex_replay.plugin"
BASE, REPORTING, TOP = 1, 2, 4
#: Packages that are no subject's; a module that stands in the plugin's own folder is at the top.
FLOORS = {"base": BASE, "reporting": REPORTING}
SUBJECT = 3


MODULES = {name: source for name, source in sources("codex_replay").items() if f"{name}.".startswith(f"{PLUGIN}.")}


def package(module: str) -> str:
    """The package below the plugin that a module belongs to; "" for the plugin's own modules."""
    below = module.removeprefix(PLUGIN).strip(".").split(".")
    return below[0] if PLACES["codex_replay"].joinpath(*PLUGIN.split("."), below[0]).is_dir() else ""


def floor(module: str) -> int:
    return FLOORS.get(package(module), SUBJECT) if package(module) else TOP


def wrong(module: str, found: Iterable[str]) -> list[str]:
    """The imports of a module that look up, or from one subject at another."""
    own = package(module)
    return sorted(m for m in found if package(m) != own and (floor(m) > floor(module) or floor(m) == floor(module) == SUBJECT))


def test_no_package_of_the_plugin_looks_up_or_at_another_subject() -> None:
    assert {module: found for module, names in graph(MODULES).items() if (found := wrong(module, names))} == {}


def test_no_module_of_the_plugin_imports_itself_through_others() -> None:
    assert circles(graph(MODULES)) == []


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("base.naming", "from codex_replay.plugin.app_server.record import write_cassette", [f"{PLUGIN}.app_server.record"]),
        ("reporting.trace", "def f():\n    from codex_replay.plugin.proxy import fixture", [f"{PLUGIN}.proxy.fixture"]),
        (
            "user_fixtures.fixtures",
            "if TYPE_CHECKING:\n    from codex_replay.plugin.proxy.fixture import Proxy",
            [f"{PLUGIN}.proxy.fixture"],
        ),
        ("proxy.fixture", "import codex_replay.plugin.hooks", [f"{PLUGIN}.hooks"]),
        ("hooks", "from codex_replay.plugin.proxy import fixture", []),
        ("proxy.fixture", "from codex_replay.plugin.base import naming\nfrom codex_replay.plugin.proxy.wire import Wire", []),
    ],
)
def test_the_law_sees_a_wrong_import(module: str, source: str, expected: list[str]) -> None:
    name = f"{PLUGIN}.{module}"
    assert wrong(name, graph({name: source}, MODULES)[name]) == expected


def test_the_law_sees_a_circle() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
