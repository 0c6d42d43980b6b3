"""The headers that a web page of another origin needs from a proxy. Source: docs/contract/handoff.md, Ingress + middleware.

The specification of the proxy requires answers to CORS requests; the Fetch standard (CORS protocol) defines their content.
"""

from __future__ import annotations

import pytest

from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from suites.proxy.expected import AS_SPECIFIED, CALLS, ENDPOINTS, WORKS
from suites.proxy.saying import must_be, must_be_one_of

pytestmark = [
    pytest.mark.proxy_profile(WORKS, AS_SPECIFIED),
    pytest.mark.model("Hi."),
    pytest.mark.needs("cors"),
]

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
ORIGIN = "https://editor.example"
#: The headers of a browser's preflight before a POST with a bearer and JSON; a preflight never has the bearer.
PREFLIGHT = {
    "Authorization": None,
    "Origin": ORIGIN,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}


def must_allow_the_origin(done: Exchange) -> None:
    """Check that the page may read the answer: the answer allows the page's origin or all origins."""
    where = f"The header Access-Control-Allow-Origin of the answer to {done.method} {done.path}"
    must_be_one_of(where, done.header("access-control-allow-origin"), ("*", ORIGIN))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("cors-preflight", "HAND-04")
def test_the_preflight_is_answered(proxy: Proxy, endpoint: str) -> None:
    """OPTIONS succeeds without a bearer token, allows the POST with its two headers, and does not reach the app-server."""
    proxy.process()
    done = proxy.ask("OPTIONS", PATHS[endpoint], headers=PREFLIGHT)
    must_be_one_of(f"The status of the answer to OPTIONS {done.path}, a preflight", done.status, (200, 204))
    must_allow_the_origin(done)
    methods = [each.strip() for each in (done.header("access-control-allow-methods") or "").split(",")]
    assert {"POST", "*"} & set(methods), f"Access-Control-Allow-Methods must have POST; it is {', '.join(methods) or 'missing'}."
    allowed = {each.strip().lower() for each in (done.header("access-control-allow-headers") or "").split(",")}
    # `*` covers all headers except authorization, which must be named.
    missing = [name for name in ("authorization", "content-type") if name not in allowed]
    missing = [name for name in missing if name == "authorization" or "*" not in allowed]
    must_be("The headers of the request that Access-Control-Allow-Headers lacks", missing, [])
    must_be("The proxy's messages to its app-server for a preflight", [call["method"] for call in done.calls(*CALLS)], [])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("cors-answer", "HAND-04")
def test_the_answer_may_be_read(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """Every answer, streamed or not, has the header that allows the origin of the page."""
    must_allow_the_origin(proxy.post(endpoint, {"stream": stream}, headers={"Origin": ORIGIN}))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("cors-refusal", "HAND-04")
def test_a_refusal_may_be_read(proxy: Proxy, endpoint: str) -> None:
    """A 401 also has the header that allows the origin; otherwise, a page sees only a network error."""
    done = proxy.post(endpoint, headers={"Origin": ORIGIN, "Authorization": "Bearer sk-wrong"}, ok=False)
    must_be(f"The status of the answer to POST {done.path} with a wrong bearer", done.status, 401)
    must_allow_the_origin(done)
