"""A proxy sends only members that 0.92 knows. Source: docs/contract/real-0.92.md, section 4.

The app-server ignores an unknown member silently (REAL-45), so a setting of the client could get lost without an error.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.proxy.fields import SPECIFIED, unknown_members
from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.expected import AS_SPECIFIED, ENDPOINTS, WORKS, format_of, tool
from suites.proxy.failures import is_refused

pytestmark = [pytest.mark.proxy_profile(WORKS, AS_SPECIFIED), pytest.mark.model('{"sum":5}')]

#: What a request of each endpoint may have besides its prompt; a proxy has to do with each what it can.
RICH: dict[str, dict[str, Any]] = {
    "chat": {"temperature": 0.5, "top_p": 0.9, "max_tokens": 200, "reasoning_effort": "low", "tool_choice": "auto"},
    "responses": {"temperature": 0.5, "top_p": 0.9, "max_output_tokens": 200, "reasoning": {"effort": "low"}},
}


def seen(proxy: Proxy) -> None:
    """Skip the case if the suite cannot see the calls of the proxy."""
    if proxy.attached:
        pytest.skip("not verified: the calls of a proxy that is given as a URL cannot be seen; give a command")


def must_be_known(proxy: Proxy, calls: list[dict[str, Any]], allowed: dict[str, tuple[str, ...]]) -> None:
    """Check that no call has a member that the Codex version does not know, except the members that the profile's
    specification names.
    """
    __tracebackhide__ = True
    assert calls, "The proxy sent no message to its app-server, so the suite cannot check the members."
    found = []
    for call in calls:
        for path in unknown_members(call, proxy.version):
            name = path.removeprefix(f"{call['method']}.params.").partition(".")[0].partition("[")[0]
            if name not in allowed.get(call["method"], ()):
                found.append(path)
    methods = {call["method"] for call in calls} & {*found}
    members = [path for path in dict.fromkeys(found) if path not in methods]
    sentences = []
    if methods:
        sentences.append(
            f"The proxy calls methods that Codex {proxy.version} does not have, and refuses: {', '.join(sorted(methods))}. "
            f"Leave these calls out, or call a method of {proxy.version}."
        )
    if members:
        sentences.append(
            f"The proxy sends members that Codex {proxy.version} does not know, and silently ignores: {', '.join(members)}. "
            f"Leave these members out, or use the member that {proxy.version} has for the same purpose."
        )
    if sentences:
        raise AssertionError(" ".join(sentences))


@pytest.mark.parametrize("asked", ["plain", "everything"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("known-members", "REAL-45")
def test_no_unknown_members(proxy: Proxy, endpoint: str, asked: str) -> None:
    """For plain and full requests, all members of the calls are known.

    In the profile as-specified, the names in its specification are also allowed.
    """
    seen(proxy)
    tools = {"tools": [tool(endpoint)]} if {"text-tools", "native-tools"} & {*proxy.able} else {}
    more = {**RICH[endpoint], **format_of(endpoint), **tools} if asked == "everything" else {}
    done = proxy.post(endpoint, more, ok=False)
    if is_refused(done, *more):
        pytest.skip(f"not verified: the proxy refuses a member of the request: {done.shown()}")
    must_be_known(proxy, done.calls(), SPECIFIED if proxy.profile == AS_SPECIFIED else {})


@pytest.mark.spec("known-handshake", "REAL-45")
def test_the_handshake_has_no_unknown_members(proxy: Proxy) -> None:
    """All members of the `initialize` requests to all app-servers are known."""
    seen(proxy)
    proxy.ask("GET", "/v1/models")
    if not [*proxy.handshakes()]:  # a proxy may start its app-server with the first request
        proxy.post("responses" if "responses" in proxy.able else "chat", ok=False)
    must_be_known(proxy, list(proxy.handshakes()), {})
