"""Which cases the command line of a run selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def a_part(config: pytest.Config) -> bool:
    """Return True if the user selected modules or cases by name; the baseline entries of other cases are then ignored."""
    return any(word.partition("::")[0].endswith(".py") for word in config.args)


def selected(config: pytest.Config) -> bool:
    """Return True if the run contains only a selection of the cases.

    In a run of selected cases, a baseline entry without a reason is not an error.
    """
    option = config.option
    return a_part(config) or bool(getattr(option, "keyword", "") or getattr(option, "markexpr", ""))


def looked_at(config: pytest.Config) -> bool:
    """Return True if every argument is the node id of a case.

    A user who names single cases sees their failures in full, even known failures.
    """
    words = [str(word) for word in config.args]
    return bool(words) and all("::" in word for word in words)
