"""Drift on the bundles that real binaries generated: totals, and the committed matrix again.

The bundle of 0.92.0 is generated here by its binary; those of other versions are looked at where they have been made
(`make drift-matrix` makes them all).
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from codex_replay.protocol import versions
from codex_replay.protocol.drift.compare import compare
from codex_replay.protocol.drift.experimental import declares
from codex_replay.protocol.drift.findings import counts
from codex_replay.protocol.drift.report import encode
from codex_replay.protocol.schema import bundle
from codex_replay.shell.codex import bundles
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.schema_gen import generate
from codex_replay.shell.files import version_data
from codex_replay.shell.files.bundle_files import load_file
from tests.cli.drift.test_drift_matrix import MATRIX, OBSERVED, three
from tests.tools import drift_matrix as matrix

#: The versions whose bundles are at hand; 0.92.0 always is, so nothing here is ever empty.
AT_HAND = [version for version in versions.STEPS if version == "0.92.0" or bundles.cached(version)]


def beside(version: str) -> bool:
    """Tell whether a step to this version needs no bundle that is not there: its experimental one is, or it has none."""
    return bundles.cached(version, experimental=True) is not None or not declares(bundles.bundle_of(version))


def test_the_binary_and_the_vendored_bundle_do_not_drift(tmp_path: Path) -> None:
    binary = find_installed("0.92.0")
    assert binary is not None, "Codex 0.92.0 is missing: run `codex-replay codex install 0.92.0` first"
    generate([str(binary), "app-server"], str(tmp_path / "out"))
    drift = compare(bundle.load("0.92.0"), load_file(tmp_path / "out", "generated"))
    assert (drift.findings, drift.uncompared) == ((), ())
    assert three(drift.counts["to"]) == OBSERVED["0.92.0"]


@pytest.mark.parametrize("version", AT_HAND)
def test_the_totals_of_a_real_bundle_are_those_that_were_observed(version: str) -> None:
    """The totals of a real bundle are those that were observed. (REAL-116)"""
    found = bundles.bundle_of(version)
    if version in OBSERVED:
        assert three(counts(found)) == OBSERVED[version]
    drift = compare(found, load_file(root(version), "again"))
    assert (drift.findings, drift.uncompared) == ((), ())


def root(version: str) -> Path:
    """Return the folder of a bundle, from which it is read a second time."""
    return bundles.cached(version) or Path(version_data.schema_folder(version))


#: The steps whose bundles are both at hand; where there is none, the one version that always is.
BOTH = [pair for pair in pairwise(versions.STEPS) if set(pair) <= set(AT_HAND) and beside(pair[1])] or [("0.92.0", "0.92.0")]


@pytest.mark.parametrize(("old", "new"), BOTH)
def test_the_committed_step_is_what_the_real_bundles_say(old: str, new: str) -> None:
    report = matrix.step(bundles.bundle_of(old), bundles.bundle_of(new))
    if old == new:
        assert report["findings"] == []
    else:
        assert encode(report) == (MATRIX / f"{old}-{new}.json").read_text()
