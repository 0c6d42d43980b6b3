"""Cases for some Codex versions: the markers `since` and `until`, each with a version and the reason.

A case that is not for the version under test is skipped by name, with the reason in the report.
"""

from __future__ import annotations

import pytest

from codex_replay.protocol.versions import DEFAULT, is_version, numbers

MARKERS = (
    "since(version, reason): the case is for this Codex version and later ones",
    "until(version, reason): the case is for Codex versions up to this one",
)


def skip_for_version(items: list[pytest.Item], version: str) -> str:
    """Skip the cases that are not for `version`; return what is wrong with a marker, "" if nothing is.

    Of a subject whose version is not known, every case runs.
    """
    for item in items:
        for name in ("since", "until"):
            for mark in item.iter_markers(name):
                given = mark.args
                if len(given) != 2 or not all(isinstance(one, str) for one in given) or not is_version(given[0]):
                    return f'{item.nodeid}: the marker {name} takes a version and the reason: {name}("{DEFAULT}", "why").'
                if is_version(version) and _excludes(name, numbers(given[0]), numbers(version)):
                    item.add_marker(pytest.mark.skip(reason=f"not for Codex {version}: {given[1]}"))
    return ""


def _excludes(name: str, bound: tuple[int, ...], version: tuple[int, ...]) -> bool:
    return version < bound if name == "since" else version > bound
