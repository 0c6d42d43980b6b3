"""Select cases for a Codex version (markers `since` and `until`), and the values that a case expects of a version.

Each marker names a Codex version and a reason. A case that is not for the version under test is skipped, and the report
shows the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest

from codex_replay.protocol.versions import DEFAULT, is_version, numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

#: How the reason of a case begins that is not for the version.
_NOT_FOR = "not for Codex"

MARKERS = (
    "since(version, reason): the case is for this Codex version and later ones",
    "until(version, reason): the case is for Codex versions up to this one",
)


def skip_for_version(items: list[pytest.Item], version: str) -> str:
    """Skip the cases that are not for `version`.

    Return a sentence about the first invalid marker, or "" if all markers are valid.

    If the Codex version of the program under test is unknown, every case runs.
    """
    for item in items:
        for name in ("since", "until"):
            for mark in item.iter_markers(name):
                given = mark.args
                if len(given) != 2 or not all(isinstance(one, str) for one in given) or not is_version(given[0]):
                    return f'{item.nodeid}: the marker {name} takes a version and the reason: {name}("{DEFAULT}", "why").'
                older, newer = (version, given[0]) if name == "since" else (given[0], version)
                if is_version(version) and numbers(older) < numbers(newer):
                    item.add_marker(pytest.mark.skip(reason=f"{_NOT_FOR} {version}: {given[1]}"))
    return ""


def run_on_later(items: list[pytest.Item]) -> None:
    """Run the cases that the marker `until` would skip, because a comparison of versions must show removed behaviour."""
    for item in items:
        if next(item.iter_markers("since"), None) is None:
            item.own_markers[:] = [
                mark
                for mark in item.own_markers
                if mark.name != "skip" or not str(mark.kwargs.get("reason", "")).startswith(_NOT_FOR)
            ]


def value_for(values: Mapping[str, T], version: str) -> T:
    """Return one value from `values`, whose keys are Codex versions: the value of the newest version that is not newer than
    `version`.

    If `version` is a text such as "unknown", return the value for the default version. Raises `ValueError` if `version` is
    older than all versions in `values`.
    """
    at = numbers(version if is_version(version) else DEFAULT)
    known = {numbers(since): value for since, value in values.items()}
    fitting = [since for since in known if since <= at]
    if not fitting:
        raise ValueError(f"no value is for Codex {version}: the oldest is for {min(values, key=numbers)}")
    return known[max(fitting)]
