"""The option `--shard I/N`: run every N-th case, starting with the I-th case, so that N machines share a run.

After the runs, `codex-replay report merge` joins the reports of the N machines.
"""

from __future__ import annotations

import re

import pytest

OPTION = "shard"


def shard_of(config: pytest.Config) -> tuple[int, int] | None:
    """Return (I, N) from the option `--shard I/N`, or None without the option; raises `pytest.UsageError` for any other value."""
    text = config.getoption(OPTION, None)
    if text is None:
        return None
    found = re.fullmatch(r"([1-9]\d{0,3})/([1-9]\d{0,3})", str(text), re.ASCII)
    if found is None or int(found[1]) > int(found[2]):
        raise pytest.UsageError(f"--shard {text}: give I/N with I from 1 to N, such as 1/4.")
    return int(found[1]), int(found[2])


class Shard:
    """Select the cases of one shard; pytest loads this plugin only if the option `--shard` is given."""

    def __init__(self, number: int, of: int) -> None:
        self.number, self.of = number, of

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep every N-th of the collected cases.

        Neighbouring cases take about the same time, so all shards take about the same time.
        """
        kept = items[self.number - 1 :: self.of]
        left_out = set(items) - set(kept)
        if left_out:
            config.hook.pytest_deselected(items=[item for item in items if item in left_out])
            items[:] = kept
