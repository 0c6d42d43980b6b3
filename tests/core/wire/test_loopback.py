"""Whose hosts are asked without a word, because they are this machine."""

from __future__ import annotations

import pytest

from codex_replay.core.wire.loopback import is_loopback


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/v1", "http://127.9.9.9", "http://[::1]:1/x", "https://localhost/v1"])
def test_this_machine_is_asked_freely(url: str) -> None:
    assert is_loopback(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "http://10.0.0.1",
        "http://[::2]",
        "x",
    ],
)
def test_any_other_is_not(url: str) -> None:
    assert not is_loopback(url)
