"""Model names, aliases and their implied effort. Source: docs/contract/payloads.md, Common normalization rules."""

from __future__ import annotations

import pytest

from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.answers import must_be_an_object
from suites.proxy.expected import ALIAS, AS_SPECIFIED, EFFECTIVE, ENDPOINTS, IMPLIED, WORKS
from suites.proxy.saying import must_be, must_be_one_of, must_be_unset

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

MESSAGE = "sendUserMessage"
#: The efforts that the app-server accepts.
EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh"]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("model-effective", "PAY-08", "PAY-21")
def test_the_app_server_gets_the_effective_model(proxy: Proxy, endpoint: str) -> None:
    """The app-server gets the model of an alias, not the alias."""
    must_be("newConversation.model", proxy.post(endpoint, {"model": ALIAS}).params("newConversation")["model"], EFFECTIVE)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("model-turn", "PAY-58")
def test_the_model_of_the_turn(proxy: Proxy, endpoint: str) -> None:
    """The turn has the effective model or the alias, because the document's rule and its example differ."""
    must_be_one_of(
        "sendUserTurn.model", proxy.post(endpoint, {"model": ALIAS}).params("sendUserTurn")["model"], (EFFECTIVE, ALIAS)
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", [ALIAS, "gpt-5.2"])
@pytest.mark.proxy_profile(AS_SPECIFIED, WORKS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("model-requested", "PAY-09")
def test_the_client_gets_the_model_that_it_asked_for(proxy: Proxy, endpoint: str, model: str, stream: bool) -> None:
    """The response has the model name that the client requested."""
    done = proxy.post(endpoint, {"model": model, "stream": stream})
    values = [event.value for event in done.events if event.value] if stream else [done.json]
    report = [value["response"] for value in values if "response" in value] if stream and endpoint == "responses" else values
    for event in done.events if stream else ():
        must_be_an_object(event)
    assert report, f"no event of the stream has a `response`: {done.shown()}"
    must_be("`model` of the response (in a stream, of each event that has one)", {each["model"] for each in report}, {model})


@pytest.mark.spec("model-implied-chat", "PAY-13", "PAY-59", "PAY-89")
def test_implied_effort_on_chat(proxy: Proxy) -> None:
    """On chat, sendUserTurn has the effort that the alias implies, and sendUserMessage does not."""
    done = proxy.chat({"model": ALIAS})
    must_be("sendUserTurn.effort", done.params("sendUserTurn")["effort"], IMPLIED)
    must_be_unset("sendUserMessage", done.params("sendUserMessage"), "reasoning")


@pytest.mark.spec("model-implied-responses", "PAY-13", "PAY-85")
def test_implied_effort_on_responses(proxy: Proxy) -> None:
    """On responses, sendUserMessage has the effort that the alias implies."""
    must_be("sendUserMessage.reasoning", proxy.responses({"model": ALIAS}).params(MESSAGE)["reasoning"], {"effort": IMPLIED})


@pytest.mark.parametrize(
    ("model", "given", "wanted"), [(ALIAS, None, IMPLIED), ("gpt-5.2", "high", "high"), (ALIAS, "high", "high")]
)
@pytest.mark.spec("model-effort-of-the-turn", "PAY-60")
def test_effort_of_the_turn_on_responses(proxy: Proxy, model: str, given: str | None, wanted: str) -> None:
    """On responses, sendUserTurn has the effort that the alias implies, as on chat."""
    reasoning = {"reasoning": {"effort": given}} if given else {}
    must_be("sendUserTurn.effort", proxy.responses({"model": model, **reasoning}).params("sendUserTurn")["effort"], wanted)


@pytest.mark.spec("model-reasoning-members", "PAY-85")
def test_reasoning_has_the_effort_alone(proxy: Proxy) -> None:
    """The payload has only the effort from the client's `reasoning`."""
    done = proxy.responses({"reasoning": {"effort": "high", "summary": "detailed"}})
    must_be("sendUserMessage.reasoning", done.params(MESSAGE)["reasoning"], {"effort": "high"})


@pytest.mark.spec("model-implied-skipped", "PAY-87")
def test_implied_effort_without_a_turn(proxy: Proxy) -> None:
    """sendUserMessage has the effort that the alias implies, even if PROXY_RESPONSES_SKIP_TURN removes sendUserTurn."""
    done = proxy.responses({"model": ALIAS}, env={"PROXY_RESPONSES_SKIP_TURN": "true"})
    must_be("sendUserMessage.reasoning", done.params(MESSAGE)["reasoning"], {"effort": IMPLIED})


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("model", ["gpt-5.2", ALIAS])
@pytest.mark.spec("model-explicit-chat", "PAY-12", "PAY-59")
def test_explicit_effort_on_chat(proxy: Proxy, model: str, effort: str) -> None:
    """An explicit effort of the client overrides the implied effort of the alias."""
    done = proxy.chat({"model": model, "reasoning_effort": effort})
    must_be("sendUserTurn.effort", done.params("sendUserTurn")["effort"], effort)


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("model", ["gpt-5.2", ALIAS])
@pytest.mark.spec("model-explicit-responses", "PAY-12", "PAY-85")
def test_explicit_effort_on_responses(proxy: Proxy, model: str, effort: str) -> None:
    """An explicit effort of the client overrides the implied effort of the alias."""
    done = proxy.responses({"model": model, "reasoning": {"effort": effort}})
    must_be("sendUserMessage.reasoning", done.params(MESSAGE)["reasoning"], {"effort": effort})


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("model-turn-wire", "PAY-08")
def test_other_models_are_left_alone(proxy: Proxy, endpoint: str) -> None:
    """The app-server gets a model that is not an alias unchanged."""
    done = proxy.post(endpoint, {"model": "gpt-5.2-codex"})
    for name in ("newConversation", "sendUserTurn"):
        must_be(f"{name}.model", done.params(name)["model"], "gpt-5.2-codex")


@pytest.mark.needs("models")
@pytest.mark.proxy_profile(AS_SPECIFIED, WORKS)
@pytest.mark.spec("models-list", "PAY-08")
def test_the_list_of_models(proxy: Proxy) -> None:
    """GET /v1/models lists models with ids, in the form of the OpenAI API."""
    found = proxy.ask("GET", "/v1/models", ok=True).json
    must_be("object", found["object"], "list")
    assert found["data"], "data, the list of models, is empty"
    for number, each in enumerate(found["data"]):
        assert isinstance(each["id"], str), f"data[{number}].id must be a string, not {each['id']!r}"
        must_be(f"data[{number}].object", each["object"], "model")
