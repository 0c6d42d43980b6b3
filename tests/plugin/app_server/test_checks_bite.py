"""Every case of the app-server suite is turned red by a named broken recording or broken server; the table is printed.

The frames' validation is switched off there, so that it is the case's own assertions that bite; that the validation bites is a
test of its own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.miniatures import app_server_matrix as matrix
from tests.miniatures.app_server_matrix import ABOUT, break_cassettes, nodes, run_pytest
from tests.miniatures.broken_cassettes import VARIANTS
from tests.miniatures.mutant import WAYS

#: The pairs are tried in so many tests, so that pytest-xdist can share them out.
SHARES = 4
#: What only a live server can show: tests/real/test_lifecycle_bites.py turns these red.
LIVE = {
    "test_lifecycle/closed_stdout",
    "test_lifecycle/end_of_input_with_a_pending_approval",
    "test_lifecycle/signal-SIGHUP",
    "test_lifecycle/signal-SIGINT",
    "test_lifecycle/signal-SIGTERM",
    "test_lifecycle/signal_in_a_turn-SIGINT",
    "test_lifecycle/signal_in_a_turn-SIGTERM",
    "test_lifecycle/signal_with_a_pending_approval",
}


def test_every_case_is_turned_red_and_every_variant_is_caught(capsys: pytest.CaptureFixture[str]) -> None:
    """The recorded table is whole: run `python -m tests.miniatures.app_server_matrix` when the suite or a variant changes."""
    cases, table = nodes(), matrix.table()
    kills = {case: [variant for variant, red in table.items() if case in red] for case in cases}
    width = max(map(len, kills))
    with capsys.disabled():
        print("\n\ncheck" + " " * (width - 3) + "turned red by")
        for case, variants in sorted(kills.items()):
            print(f"{case.ljust(width)}  {', '.join(variants[:5]) or 'NOTHING'}")
        print(f"{len(kills)} checks, {len(VARIANTS) + len(ABOUT)} variants")
    assert {case for case, variants in kills.items() if not variants} == LIVE
    assert sorted({case for red in table.values() for case in red} - set(cases)) == [], "these cases are no more"
    assert sorted({*VARIANTS, *ABOUT} - {variant for variant, red in table.items() if red}) == [], "these variants survive"
    assert set(table) - {*VARIANTS, *ABOUT} == set()
    assert set(ABOUT) == set(WAYS)


def test_the_shares_are_the_table() -> None:
    shares = [matrix.share(matrix.table(), number, SHARES) for number in range(SHARES)]
    together: dict[str, list[str]] = {}
    for pairs in shares:
        for name, cases in pairs.items():
            together.setdefault(name, []).extend(cases)
    assert together == matrix.table()
    assert max(counts := [sum(map(len, pairs.values())) for pairs in shares]) - min(counts) <= 1


@pytest.mark.parametrize("share", range(SHARES))
def test_the_table_is_true(share: int, tmp_path: Path) -> None:
    """Each pair of the table is tried anew."""
    pairs = matrix.share(matrix.table(), share, SHARES)
    broken = matrix.Broken(tmp_path, pairs)
    red = {name: sorted(cases) for name, cases in broken.run(pairs).items()}
    assert red == pairs


def test_a_pair_that_is_not_red_is_noticed(tmp_path: Path) -> None:
    pairs = {"answers-twice": ["test_handshake/initialize", "test_v2/text_turn"]}
    broken = matrix.Broken(tmp_path, pairs)
    broken.seen_by["answers-twice"] = broken.cases
    broken.settings["answers-twice"] = {}  # a server that does nothing wrong
    assert broken.run(pairs) == {"answers-twice": {}}


def test_a_frame_that_the_bundle_does_not_know_fails_its_case(tmp_path: Path) -> None:
    cases = {name: node for name, node in nodes().items() if name == "test_v1/items_need_data"}
    broken = break_cassettes("results-with-a-further-key", tmp_path / "cassettes", cases)
    done = run_pytest(*broken, "--cassettes", str(tmp_path / "cassettes"), "--report", str(tmp_path))
    assert done.returncode == 1
    assert "The server broke the protocol (subject)" in done.stdout
    assert "`ok`" in done.stdout
