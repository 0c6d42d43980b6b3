"""Model names, aliases and the effort that they imply. Source: app-server-payloads.md, Common normalization rules."""

from __future__ import annotations

import pytest

from harness.plugin.proxy import Proxy
from suites.proxy.expected import ALIAS, AS_SPECIFIED, EFFECTIVE, ENDPOINTS, IMPLIED, SPEC, WORKS, is_unset

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

RULES = f"{SPEC}, Common normalization rules"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec(
    "model-effective", f"{SPEC}, 1) newConversation", "`model` is the **effective** model chosen after normalization"
)
def test_the_app_server_gets_the_effective_model(proxy: Proxy, endpoint: str) -> None:
    """An alias is resolved before it is sent."""
    assert proxy.post(endpoint, {"model": ALIAS}).params("newConversation")["model"] == EFFECTIVE


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("model-turn", f"{SPEC}, 2) sendUserTurn", '"model": "gpt-5.2-codev-l" (the example shows the alias)')
def test_the_model_of_the_turn(proxy: Proxy, endpoint: str) -> None:
    """The effective model, or the alias: the document's rule and its example differ here."""
    assert proxy.post(endpoint, {"model": ALIAS}).params("sendUserTurn")["model"] in (EFFECTIVE, ALIAS)


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
    assert told
    assert {each["model"] for each in told} == {model}


@pytest.mark.spec("model-implied-chat", f"{SPEC}, Chat endpoint", "Implied reasoning effort is set on the **turn**")
def test_implied_effort_on_chat(proxy: Proxy) -> None:
    """On the turn, and not on the message."""
    done = proxy.chat({"model": ALIAS})
    assert done.params("sendUserTurn")["effort"] == IMPLIED
    assert is_unset(done.params("sendUserMessage"), "reasoning")


@pytest.mark.spec(
    "model-implied-responses", f"{SPEC}, Responses endpoint", "Injects `reasoning.effort` into the **message** payload"
)
def test_implied_effort_on_responses(proxy: Proxy) -> None:
    """On the message."""
    assert proxy.responses({"model": ALIAS}).params("sendUserMessage")["reasoning"]["effort"] == IMPLIED


@pytest.mark.spec(
    "model-implied-skipped", f"{SPEC}, Responses endpoint", "Injects `reasoning.effort` into the **message** payload"
)
def test_implied_effort_without_a_turn(proxy: Proxy) -> None:
    """On the message, turn or no turn."""
    done = proxy.responses({"model": ALIAS}, env={"PROXY_RESPONSES_SKIP_TURN": "true"})
    assert done.params("sendUserMessage")["reasoning"]["effort"] == IMPLIED


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
@pytest.mark.parametrize("model", ["gpt-5.2", ALIAS])
@pytest.mark.spec("model-explicit-chat", RULES, "implied by model aliases when not explicitly supplied")
def test_explicit_effort_on_chat(proxy: Proxy, model: str, effort: str) -> None:
    """What the client says wins over what the alias implies."""
    assert proxy.chat({"model": model, "reasoning_effort": effort}).params("sendUserTurn")["effort"] == effort


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
@pytest.mark.parametrize("model", ["gpt-5.2", ALIAS])
@pytest.mark.spec("model-explicit-responses", RULES, "implied by model aliases when not explicitly supplied")
def test_explicit_effort_on_responses(proxy: Proxy, model: str, effort: str) -> None:
    """What the client says wins over what the alias implies."""
    done = proxy.responses({"model": model, "reasoning": {"effort": effort}})
    assert done.params("sendUserMessage")["reasoning"]["effort"] == effort


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("model-turn-wire", RULES, "`model` is normalized by `normalizeModel()`")
def test_other_models_are_left_alone(proxy: Proxy, endpoint: str) -> None:
    """A model that is no alias reaches the app-server under its own name."""
    done = proxy.post(endpoint, {"model": "gpt-5.2-codex"})
    assert [done.params(name)["model"] for name in ("newConversation", "sendUserTurn")] == ["gpt-5.2-codex", "gpt-5.2-codex"]


@pytest.mark.needs("models")
@pytest.mark.proxy_profile(AS_SPECIFIED, WORKS)
@pytest.mark.spec("models-list", f"{SPEC}, Common normalization rules", "`model` is normalized by `normalizeModel()`")
def test_the_list_of_models(proxy: Proxy) -> None:
    """GET /v1/models lists models with ids, in the form that OpenAI's clients read."""
    found = proxy.ask("GET", "/v1/models", ok=True).json
    assert found["object"] == "list"
    assert found["data"]
    assert all(isinstance(each["id"], str) and each["object"] == "model" for each in found["data"])
