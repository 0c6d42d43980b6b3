"""The payload of sendUserTurn, and the models in it."""

from __future__ import annotations

from typing import Any

from codex_replay.reference.proxy.asking import normalise
from codex_replay.reference.proxy.asking.models import Model
from tests.strength.proxy_variants.patching import after, drop, in_params, put, variant

TURN = "sendUserTurn"


@variant
def turn_without_cwd() -> None:
    drop(TURN, "cwd")


@variant
def turn_without_summary() -> None:
    drop(TURN, "summary")


@variant
def turn_summary_concise() -> None:
    put(TURN, summary="concise")


@variant
def turn_sandbox_in_camel_case() -> None:
    in_params(TURN, lambda params, *_: params.update(sandboxPolicy={"type": "readOnly"}))


@variant
def turn_sandbox_as_a_word() -> None:
    in_params(TURN, lambda params, *_: params.update(sandboxPolicy="read-only"))


@variant
def turn_with_another_model() -> None:
    put(TURN, model="gpt-5")


@variant
def turn_without_model() -> None:
    drop(TURN, "model")


@variant
def turn_items_with_a_third_key() -> None:
    in_params(TURN, lambda params, *_: [item.update(text_elements=[]) for item in params["items"]])


@variant
def turn_items_of_v2() -> None:
    def change(params: Any, *_: Any) -> None:
        params["items"] = [{"type": item["type"], **item["data"]} for item in params["items"]]

    in_params(TURN, change)


@variant
def turn_and_message_differ() -> None:
    def change(params: Any, *_: Any) -> None:
        for item in params["items"]:
            if item["type"] == "text":
                item["data"]["text"] += " "

    in_params("sendUserMessage", change)


@variant
def empty_prompts_make_no_item() -> None:
    def change(params: Any, *_: Any) -> None:
        params["items"] = [i for i in params["items"] if i["type"] != "text" or i["data"]["text"] not in ("", "[user] ")]

    in_params(TURN, change)


@variant
def choices_in_one_spelling() -> None:
    drop(TURN, "choice_count")


@variant
def choices_as_text() -> None:
    def change(params: Any, *_: Any) -> None:
        for key in {"choiceCount", "choice_count"} & params.keys():
            params[key] = str(params[key])

    in_params(TURN, change)


@variant
def no_choices() -> None:
    drop(TURN, "choiceCount", "choice_count")


@variant
def choices_are_always_one() -> None:
    in_params(TURN, lambda params, *_: "choiceCount" in params and params.update(choiceCount=1, choice_count=1))


@variant
def turn_with_words_before_the_prompt() -> None:
    in_params(TURN, lambda params, *_: [i["data"].update(text=f"Answer this:\n{i['data']['text']}") for i in params["items"]])


@variant
def output_schema_null_in_one_spelling() -> None:
    put(TURN, output_schema=None)


@variant
def choices_unasked_in_one_spelling() -> None:
    in_params(TURN, lambda params, *_: params.setdefault("choiceCount", 1))


@variant
def choices_unasked_are_two() -> None:
    in_params(TURN, lambda params, *_: "choiceCount" in params or params.update(choiceCount=2, choice_count=2))


@variant
def output_schema_in_one_spelling() -> None:
    drop(TURN, "output_schema")


@variant
def output_schema_empty() -> None:
    in_params(TURN, lambda params, *_: params.update(outputSchema=params["outputSchema"] or {}, output_schema={}))


@variant
def effort_of_its_own() -> None:
    in_params(TURN, lambda params, *_: params.setdefault("effort", "medium"))


@variant
def turn_has_tools_of_its_own() -> None:
    in_params(TURN, lambda params, *_: params.setdefault("tools", {"definitions": [{"type": "web_search"}]}))


@variant
def turn_with_temperature() -> None:
    in_params(TURN, lambda params, asked, _: params.update(temperature=asked.temperature))


# -- models ----------------------------------------------------------------------------------------------------------------


def in_model(change: Any) -> None:
    """Change what a model's name is resolved to."""
    after(normalise, "normalize_model", lambda model, *_: change(model))


@variant
def effective_model_to_the_client() -> None:
    in_model(lambda model: Model(model.effective, model.effective, model.effort))


@variant
def alias_in_the_stream_only_at_the_start() -> None:
    from codex_replay.reference.proxy.answering.responses import ResponsesAnswer

    old = ResponsesAnswer.feed

    def feed(self: Any, piece: Any) -> Any:
        for event in old(self, piece):
            yield event.replace(b'"model":"gpt-5.2-codev-l"', b'"model":"gpt-5.2"')

    ResponsesAnswer.feed = feed


@variant
def alias_implies_high() -> None:
    in_model(lambda model: model._replace(effort="high" if model.effort else None))


@variant
def alias_implies_nothing() -> None:
    in_model(lambda model: model._replace(effort=None))


@variant
def unknown_models_become_the_default() -> None:
    in_model(lambda model: model if model.effective == "gpt-5.2" else Model(model.requested, "gpt-5.2", None))


@variant
def model_of_the_turn_is_the_default() -> None:
    in_params(TURN, lambda params, *_: params.update(model="gpt-5.2"))


@variant
def alias_before_effort() -> None:
    after(normalise, "chat_request", lambda asked, *_: asked)
    from codex_replay.reference.proxy import app

    def change(asked: Any, *_: Any) -> Any:
        return asked._replace(effort=asked.model.effort or asked.effort)

    after(app, "chat_request", change)
    after(app, "responses_request", change)


@variant
def explicit_effort_ignored_on_chat() -> None:
    from codex_replay.reference.proxy import app

    after(app, "chat_request", lambda asked, *_: asked._replace(effort=asked.model.effort))


@variant
def explicit_effort_ignored_on_responses() -> None:
    from codex_replay.reference.proxy import app

    after(app, "responses_request", lambda asked, *_: asked._replace(effort=asked.model.effort))


@variant
def effort_not_on_the_turn() -> None:
    drop(TURN, "effort")


@variant
def models_in_a_bare_list() -> None:
    from codex_replay.reference.proxy import app

    after(app, "for_client", lambda data, value: data)
    old = app.for_client

    def for_client(value: Any) -> bytes:
        if isinstance(value, dict) and value.get("object") == "list":
            value = {"models": value["data"]}
        return old(value)

    app.for_client = for_client


@variant
def models_without_object() -> None:
    from codex_replay.reference.proxy import app

    def card(name: str) -> Any:
        return {"id": name}

    app._card = card


@variant
def effort_of_the_turn_only_on_chat() -> None:
    in_params(TURN, lambda params, asked, _: asked.endpoint == "responses" and params.pop("effort", None))


@variant
def three_efforts_known() -> None:
    def known(params: dict[str, Any], *_: Any) -> None:
        if params.get("effort") not in ("low", "medium", "high"):
            params.pop("effort", None)

    in_params("sendUserTurn", known)


@variant
def three_efforts_known_on_responses() -> None:
    def known(params: dict[str, Any], *_: Any) -> None:
        if (params.get("reasoning") or {}).get("effort") not in ("low", "medium", "high"):
            params.pop("reasoning", None)

    in_params("sendUserMessage", known)
