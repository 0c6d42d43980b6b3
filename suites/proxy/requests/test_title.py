"""Requests for titles and summaries that editors send automatically. Source: docs/contract/handoff.md, Route entrypoint."""

from __future__ import annotations

import pytest

from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.answers import must_say, read
from suites.proxy.expected import AS_SPECIFIED, CALLS, WORKS
from suites.proxy.saying import must_be

pytestmark = [pytest.mark.proxy_profile(WORKS, AS_SPECIFIED), pytest.mark.model("The model was asked.")]

ASKING = {
    "title": "Generate a concise title for this conversation:\nUser: how do I bake bread without yeast?",
    "summary": "Summarize this conversation:\nUser: how do I bake bread without yeast?",
}


@pytest.mark.needs("title-intercept")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", ASKING)
@pytest.mark.spec("title-intercepted", "HAND-07")
def test_a_title_costs_no_turn(proxy: Proxy, kind: str, stream: bool) -> None:
    """The proxy answers a request for a title or a summary in the usual form, without a call to the app-server."""
    done = proxy.responses({"input": ASKING[kind], "stream": stream})
    sent = [call["method"] for call in done.calls(*CALLS, "thread/start", "turn/start")]
    must_be(f"The calls to the app-server for a {kind} (a proxy without the capability title-intercept may make some)", sent, [])
    assert read(done).text.strip(), f"the answer to a request for a {kind} has no text: {done.shown()}"
    must_be("`status` of the answer", read(done).ended, "completed")


@pytest.mark.parametrize("question", ["What is the title of the book about Ahab?", "Who wrote the summary of this law?"])
@pytest.mark.spec("title-only", "HAND-08")
def test_a_question_is_no_request_for_a_title(proxy: Proxy, question: str) -> None:
    """The proxy passes a user's question about a title or a summary to the model."""
    done = proxy.responses({"input": proxy.prompt(question)})
    must_be("The number of conversations for a question", len(done.calls("newConversation", "thread/start")), 1)
    must_say(done, "The model was asked.")
