"""Model names, aliases and the effort that they imply. Source: app-server-payloads.md, Common normalization rules."""

from __future__ import annotations

from typing import Any

import pytest

from harness.plugin.proxy import Exchange, Proxy
from suites.proxy.expected import ALIAS, AS_SPECIFIED, EFFECTIVE, ENDPOINTS, IMPLIED, SPEC, WORKS
from suites.proxy.saying import must_be, must_be_one_of, must_be_unset

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]


def effort_of(done: Exchange) -> Any:
    """`reasoning.effort` of the message; AssertionError when `reasoning` is no object."""
    reasoning = done.params("sendUserMessage")["reasoning"]
    assert isinstance(reasoning, dict), f"sendUserMessage.reasoning must be an object, not {reasoning!r}"
    return reasoning.get("effort")


RULES = f"{SPEC}, Common normalization rules"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec(
    "model-effective", f"{SPEC}, 1) newConversation", "`model` is the **effective** model chosen after normalization"
)
def test_the_app_server_gets_the_effective_model(proxy: Proxy, endpoint: str) -> None:
    """An alias is resolved before it is sent."""
    must_be("newConversation.model", proxy.post(endpoint, {"model": ALIAS}).params("newConversation")["model"], EFFECTIVE)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("model-turn", f"{SPEC}, 2) sendUserTurn", '"model": "gpt-5.2-codev-l" (the example shows the alias)')
def test_the_model_of_the_turn(proxy: Proxy, endpoint: str) -> None:
    """The effective model, or the alias: the document's rule and its example differ here."""
    must_be_one_of(
        "sendUserTurn.model", proxy.post(endpoint, {"model": ALIAS}).params("sendUserTurn")["model"], (EFFECTIVE, ALIAS)
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", [ALIAS, "gpt-5.2"])
@pytest.mark.proxy_profile(AS_SPECIFIED, WORKS)
@pytest.mark.spec("model-requested", f"{SPEC}, Responses endpoint", "Uses **model alias** for `requestedModel`")
def test_the_client_gets_the_model_that_it_asked_for(proxy: Proxy, model: str, stream: bool) -> None:
    """The response names the model as it was requested."""
    done = proxy.responses({"model": model, "stream": stream})
    told = (
        [event.value["response"] for event in done.events if event.value and "response" in event.value] if stream else [done.json]
    )
    assert told, "no event of the stream has a response"
    must_be("`model` of the response (in a stream, of each event that has one)", {each["model"] for each in told}, {model})


@pytest.mark.spec("model-implied-chat", f"{SPEC}, Chat endpoint", "Implied reasoning effort is set on the **turn**")
def test_implied_effort_on_chat(proxy: Proxy) -> None:
    """On the turn, and not on the message."""
    done = proxy.chat({"model": ALIAS})
    must_be("sendUserTurn.effort", done.params("sendUserTurn")["effort"], IMPLIED)
    must_be_unset("sendUserMessage", done.params("sendUserMessage"), "reasoning")


@pytest.mark.spec(
    "model-implied-responses", f"{SPEC}, Responses endpoint", "Injects `reasoning.effort` into the **message** payload"
)
def test_implied_effort_on_responses(proxy: Proxy) -> None:
    """On the message."""
    must_be("sendUserMessage.reasoning.effort", effort_of(proxy.responses({"model": ALIAS})), IMPLIED)


@pytest.mark.spec(
    "model-implied-skipped", f"{SPEC}, Responses endpoint", "Injects `reasoning.effort` into the **message** payload"
)
def test_implied_effort_without_a_turn(proxy: Proxy) -> None:
    """On the message, turn or no turn."""
    done = proxy.responses({"model": ALIAS}, env={"PROXY_RESPONSES_SKIP_TURN": "true"})
    must_be("sendUserMessage.reasoning.effort", effort_of(done), IMPLIED)


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
@pytest.mark.parametrize("model", ["gpt-5.2", ALIAS])
@pytest.mark.spec("model-explicit-chat", RULES, "implied by model aliases when not explicitly supplied")
def test_explicit_effort_on_chat(proxy: Proxy, model: str, effort: str) -> None:
    """What the client says wins over what the alias implies."""
    done = proxy.chat({"model": model, "reasoning_effort": effort})
    must_be("sendUserTurn.effort", done.params("sendUserTurn")["effort"], effort)


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
@pytest.mark.parametrize("model", ["gpt-5.2", ALIAS])
@pytest.mark.spec("model-explicit-responses", RULES, "implied by model aliases when not explicitly supplied")
def test_explicit_effort_on_responses(proxy: Proxy, model: str, effort: str) -> None:
    """What the client says wins over what the alias implies."""
    done = proxy.responses({"model": model, "reasoning": {"effort": effort}})
    must_be("sendUserMessage.reasoning.effort", effort_of(done), effort)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("model-turn-wire", RULES, "`model` is normalized by `normalizeModel()`")
def test_other_models_are_left_alone(proxy: Proxy, endpoint: str) -> None:
    """A model that is no alias reaches the app-server under its own name."""
    done = proxy.post(endpoint, {"model": "gpt-5.2-codex"})
    for name in ("newConversation", "sendUserTurn"):
        must_be(f"{name}.model", done.params(name)["model"], "gpt-5.2-codex")


@pytest.mark.needs("models")
@pytest.mark.proxy_profile(AS_SPECIFIED, WORKS)
@pytest.mark.spec("models-list", f"{SPEC}, Common normalization rules", "`model` is normalized by `normalizeModel()`")
def test_the_list_of_models(proxy: Proxy) -> None:
    """GET /v1/models lists models with ids, in the form that OpenAI's clients read."""
    found = proxy.ask("GET", "/v1/models", ok=True).json
    must_be("object", found["object"], "list")
    assert found["data"], "data, the list of models, is empty"
    for number, each in enumerate(found["data"]):
        assert isinstance(each["id"], str), f"data[{number}].id must be a text, not {each['id']!r}"
        must_be(f"data[{number}].object", each["object"], "model")
