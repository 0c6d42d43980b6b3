"""What the project's own cassettes say of their origin: the app-server is recorded, the Responses service is authored."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_replay.shell.cassettes.file import CassetteReader

ROOT = Path(__file__).resolve().parents[2]
CASSETTES = sorted((ROOT / "cassettes").rglob("*.ndjson"))


def wrong_origins(origin: dict[str, str], seams: set[str]) -> list[str]:
    """Return the entries that claim what did not happen, or are missing, for a cassette whose frames are of these seams."""
    expected = {"rpc": "recorded"}
    if "http" in seams:
        expected |= {"http.client": "recorded", "http.server": "authored"}
    return sorted(name for name, kind in expected.items() if origin.get(name) != kind)


def test_no_cassette_claims_a_recording_of_the_service() -> None:
    found = {}
    for path in CASSETTES:
        with CassetteReader(path) as reader:
            seams = {frame.seam for frame in reader}
        found[path.relative_to(ROOT / "cassettes").as_posix()] = wrong_origins(dict(reader.header.origin), seams)
    assert len(found) > 300
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_a_wrong_claim_is_found() -> None:
    right = {"rpc": "recorded", "http.client": "recorded", "http.server": "authored"}
    assert wrong_origins(right, {"rpc", "http"}) == []
    assert wrong_origins({**right, "http.server": "recorded"}, {"rpc", "http"}) == ["http.server"]
    assert wrong_origins({"rpc": "recorded"}, {"rpc", "http"}) == ["http.client", "http.server"]
    assert wrong_origins({"rpc": "authored"}, {"rpc"}) == ["rpc"]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_pages_say_that_the_service_was_not_recorded(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert "recorded from the real" in text
    assert "replies are authored" in text or "replies of the Responses service are authored" in text
