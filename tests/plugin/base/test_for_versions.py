"""The markers `since` and `until`: on another version a case is skipped, with the reason; a wrong marker is an error."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from codex_replay.plugin.base.for_versions import run_on_later, skip_for_version, value_for

pytest_plugins = ["pytester"]


class Item:
    """What the function needs of a case."""

    nodeid = "test_x.py::test_x"

    def __init__(self, *marks: Any) -> None:
        self.marks = marks
        self.added: list[str] = []
        self.own_markers: list[Any] = []

    def iter_markers(self, name: str) -> Iterator[Any]:
        return (mark for mark in self.marks if mark.name == name)

    def add_marker(self, mark: Any) -> None:
        self.added.append(mark.kwargs["reason"])
        self.own_markers.append(mark.mark)


def mark(name: str, *args: Any) -> Any:
    return SimpleNamespace(name=name, args=args)


@pytest.mark.parametrize(
    ("name", "bound", "version", "skipped"),
    [
        ("until", "0.107.0", "0.92.0", False),
        ("until", "0.107.0", "0.107.0", False),
        ("until", "0.107.0", "0.169.0", True),
        ("since", "0.116.0", "0.92.0", True),
        ("since", "0.116.0", "0.116.0", False),
        ("since", "0.116.0", "0.140.0-alpha.1", False),
        ("until", "0.92.0", "unknown", False),
    ],
)
def test_a_case_is_for_some_versions(name: str, bound: str, version: str, skipped: bool) -> None:
    item = Item(mark(name, bound, "it changed"))
    assert skip_for_version([item], version) == ""  # type: ignore[list-item]
    assert item.added == ([f"not for Codex {version}: it changed"] if skipped else [])


@pytest.mark.parametrize("args", [(), ("0.107.0",), ("0.107", "why"), (107, "why"), ("0.107.0", "why", "more")])
def test_a_wrong_marker_is_named(args: tuple[Any, ...]) -> None:
    assert skip_for_version([Item(mark("until", *args))], "0.169.0") == (  # type: ignore[list-item]
        'test_x.py::test_x: the marker until takes a version and the reason: until("0.92.0", "why").'
    )


@pytest.mark.parametrize(
    ("version", "value"),
    [
        ("0.92.0", "one"),
        ("0.107.5", "one"),
        ("0.108.0", "two"),
        ("0.140.0-alpha.1", "two"),
        ("1.0.0", "three"),
        ("unknown", "one"),
    ],
)
def test_a_value_counts_for_its_version_and_later_ones(version: str, value: str) -> None:
    assert value_for({"0.108.0": "two", "0.0.0": "one", "0.169.0": "three"}, version) == value


def test_a_version_without_a_value_is_named() -> None:
    with pytest.raises(ValueError, match=r"no value is for Codex 0\.92\.0: the oldest is for 0\.108\.0"):
        value_for({"0.169.0": 3, "0.108.0": 2}, "0.92.0")


@pytest.mark.parametrize(("name", "bound", "left"), [("until", "0.107.0", 1), ("since", "0.200.0", 2)])
def test_a_comparison_runs_the_cases_of_earlier_versions(name: str, bound: str, left: int) -> None:
    item = Item(mark(name, bound, "it changed"))
    item.own_markers = [pytest.mark.skip(reason="not today").mark]
    assert skip_for_version([item], "0.169.0") == ""  # type: ignore[list-item]
    assert len(item.own_markers) == 2
    run_on_later([item])  # type: ignore[list-item]
    assert len(item.own_markers) == left


def test_a_run_on_another_version_skips_and_reports_the_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.until("0.107.0", "v1 ended with 0.107")
        def test_old():
            pass

        @pytest.mark.since("0.116.0", "exec_command came")
        def test_new():
            pass
        """
    )
    given = ("--app-server", "fake@0.169.0", "-rs", "-p", "no:cacheprovider")
    result = pytester.runpytest_subprocess(*given)
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*not for Codex 0.169.0: v1 ended with 0.107*"])
    result = pytester.runpytest_subprocess(*[each.replace("@0.169.0", "") for each in given])
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*not for Codex 0.92.0: exec_command came*"])
