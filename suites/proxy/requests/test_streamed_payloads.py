"""The proxy makes the same calls for a streamed request and for a request without a stream, except for `stream`.

Source: docs/contract/payloads.md.

A proxy may handle streamed requests in separate code (HAND-09), and each other check of payloads sends only one of the two kinds
of requests.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from suites.proxy.expected import ALIAS, AS_SPECIFIED, CALLS, ENDPOINTS, NOTE, OTHER_THAN_DEFAULT, format_of, tool
from suites.proxy.saying import must_be, must_be_same

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model('{"sum":5}')]

#: The variants of a request: a model alias, and an explicit effort.
MODELS = {"implied": (ALIAS, None), "explicit": ("gpt-5.2-codex", "high")}
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "defaults": {},
    "skip-turn": {"PROXY_RESPONSES_SKIP_TURN": "true"},
    "all": OTHER_THAN_DEFAULT,
}


def request(endpoint: str, prompt: str, model: str, effort: str | None) -> dict[str, Any]:
    """Return a request that sets each field of the payloads."""
    image = "data:image/png;base64,iVBORw0KGgo="
    system = [{"role": "system", "content": "Be brief."}, {"role": "developer", "content": "Be kind."}]
    body: dict[str, Any] = {"model": model, "temperature": 0.5, "top_p": 0.25, **format_of(endpoint)}
    body["tools"] = [tool(endpoint, strict=True), tool(endpoint, "saveNote", NOTE)]
    body["tool_choice"] = "required"
    if endpoint == "chat":
        parts = [{"type": "text", "text": prompt}, {"type": "image_url", "image_url": {"url": image}}]
        body |= {"messages": [*system, {"role": "user", "content": parts}], "max_tokens": 77, "n": 1}
        return body if effort is None else {**body, "reasoning_effort": effort}
    parts = [{"type": "input_text", "text": prompt}, {"type": "input_image", "image_url": image}]
    body |= {"input": [*system, {"role": "user", "content": parts}], "max_output_tokens": 77, "instructions": "Sing."}
    return body if effort is None else {**body, "reasoning": {"effort": effort}}


def payloads(done: Exchange) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls in order, without the values that differ for each request."""
    found = [(call["method"], call["params"]) for call in done.calls(*CALLS)]
    return [(name, {key: params[key] for key in params if key not in ("conversationId", "stream")}) for name, params in found]


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("streamed-payloads", "PAY-01", "PAY-04", "PAY-08", "PAY-76", "HAND-09")
def test_only_stream_differs(proxy: Proxy, endpoint: str, model: str, env: str) -> None:
    """A request with and without a stream leads to the same calls with the same params, except for `stream`."""
    body = request(endpoint, proxy.prompt(), *MODELS[model])
    whole, streamed = (
        payloads(proxy.post(endpoint, {**body, "stream": stream}, env=ENVIRONMENTS[env])) for stream in (False, True)
    )
    must_be("The calls of a streamed request", [name for name, _ in streamed], [name for name, _ in whole])
    for (name, found), (_, wanted) in zip(streamed, whole, strict=True):
        must_be(f"The fields of {name} of a streamed request", sorted(found), sorted(wanted))
        for key, value in found.items():
            must_be_same(f"{name}.{key} of a streamed request (as without stream)", value, wanted[key])
