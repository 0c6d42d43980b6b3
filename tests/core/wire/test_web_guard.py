"""A web page that asks a local server: by a rebound name, from another origin, or without saying so."""

from __future__ import annotations

import pytest

from codex_replay.core.wire.web_guard import WebGuard, from_page

GOOD = [
    "127.0.0.1:8080",
    "127.0.0.1",
    "127.1.2.3:1",
    "localhost:8080",
    "LOCALHOST",
    "localhost.:1",
    "[::1]:8080",
    "[::1]",
    "127.0.0.1:",
    "[::1]:",
]
BAD = [
    *("evil.example:8080", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example:localhost", ""),
    *("[::1].evil.example", "10.0.0.1", "user@evil.example", "127.0.0.1@evil.example", "[fe80::1]", "0.0.0.0", "[::1"),
    *("127.0.0.1:x@evil.example", "127.0.0.1:80@evil.example", "[::1]:x@evil.example", "localhost:80:90", "localhost: 80"),
    *("127.0.0.1:123456", "localhost:\u0661", "localhost:+80", "127.0.0.1:80/x", "127.0.0.1/x", "localhost..:1", "[127.0.0.1]"),
]


def host(value: str) -> list[tuple[str, str]]:
    return [("Host", value)]


@pytest.mark.parametrize("value", GOOD)
def test_this_machine_may_ask(value: str) -> None:
    assert WebGuard("127.0.0.1").refusal(host(value)) is None


@pytest.mark.parametrize("value", BAD)
def test_another_name_may_not(value: str) -> None:
    assert WebGuard("127.0.0.1").refusal(host(value)) is not None
    assert WebGuard("127.0.0.1").refusal([*host("localhost"), *host(value)]) is not None


def test_the_bound_host_and_those_that_are_allowed_may_ask() -> None:
    assert WebGuard("10.0.0.7").refusal(host("10.0.0.7:80")) is None
    assert WebGuard("10.0.0.7").refusal(host("10.0.0.8:80")) is not None
    assert WebGuard("fe80::1").refusal(host("[fe80::1]:80")) is None
    assert WebGuard("127.0.0.1", ["Backend"]).refusal(host("backend:80")) is None


@pytest.mark.parametrize("bound", ["0.0.0.0", "::"])
def test_who_listens_everywhere_is_asked_by_any_address_but_by_no_name(bound: str) -> None:
    guard = WebGuard(bound)
    assert guard.refusal(host("192.168.1.5:80")) is None
    assert guard.refusal(host("[fe80::1]:80")) is None
    assert guard.refusal(host("evil.example:80")) is not None


def test_the_absolute_form_is_a_host_too() -> None:
    guard = WebGuard("127.0.0.1")
    assert guard.refusal(host("localhost"), "http://127.0.0.1:1/v1/models") is None
    assert guard.refusal(host("localhost"), "http://evil.example/v1/models") is not None


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ([("origin", "http://localhost:5173")], True),
        ([("Origin", "http://evil.example")], False),
        ([("Origin", "null")], False),
        ([("Origin", "")], False),
        ([("Origin", "http://localhost.evil.example:80")], False),
        ([("Sec-Fetch-Site", "cross-site")], False),
        ([("Sec-Fetch-Site", "none")], True),
        ([("Sec-Fetch-Site", "cross-site"), ("Origin", "http://127.0.0.1:3000")], True),
    ],
)
def test_a_page_of_elsewhere_may_not_ask(headers: list[tuple[str, str]], passes: bool) -> None:
    assert (WebGuard("127.0.0.1").refusal([*host("127.0.0.1:1"), *headers]) is None) is passes


def test_a_page_is_known_by_its_origin_or_its_fetch_metadata() -> None:
    assert from_page([("ORIGIN", "http://localhost")])
    assert from_page([("sec-fetch-site", "same-origin")])
    assert not from_page([("sec-fetch-site", "none"), ("host", "x")])
