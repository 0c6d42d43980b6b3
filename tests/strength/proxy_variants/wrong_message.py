"""The payload of sendUserMessage."""

from __future__ import annotations

from typing import Any

from tests.strength.proxy_variants.patching import drop, in_params, put, variant

MESSAGE = "sendUserMessage"


@variant
def message_items_with_a_third_key() -> None:
    in_params(MESSAGE, lambda params, *_: [item.update(role="user") for item in params["items"]])


@variant
def items_with_a_blank_at_the_end() -> None:
    for method in ("sendUserTurn", MESSAGE):
        in_params(method, lambda params, *_: [i["data"].update(text=i["data"]["text"] + " ") for i in params["items"]])


@variant
def limit_made_up() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if asked.max_tokens is None:
            params["maxOutputTokens"] = params["max_output_tokens"] = 1000

    in_params(MESSAGE, change)


@variant
def reasoning_with_a_summary() -> None:
    in_params(MESSAGE, lambda params, *_: "reasoning" in params and params["reasoning"].update(summary="auto"))


@variant
def reasoning_as_the_client_gave_it() -> None:
    in_params(MESSAGE, lambda params, asked, _: asked.body.get("reasoning") and params.update(reasoning=asked.body["reasoning"]))


@variant
def message_always_streams() -> None:
    put(MESSAGE, stream=True)


@variant
def message_never_streams() -> None:
    put(MESSAGE, stream=False)


@variant
def stream_null_when_unasked() -> None:
    in_params(MESSAGE, lambda params, asked, _: params.update(stream=asked.body.get("stream")))


@variant
def stream_default_told_wrong() -> None:
    in_params(MESSAGE, lambda params, asked, _: params.update(stream=asked.body.get("stream", not asked.stream)))


@variant
def usage_in_one_spelling() -> None:
    drop(MESSAGE, "include_usage")


@variant
def usage_spellings_differ() -> None:
    put(MESSAGE, include_usage=False)


@variant
def top_p_in_one_spelling() -> None:
    drop(MESSAGE, "top_p")


@variant
def limit_in_one_spelling() -> None:
    drop(MESSAGE, "maxOutputTokens")


@variant
def response_format_in_one_spelling() -> None:
    drop(MESSAGE, "response_format")


@variant
def final_schema_in_one_spelling() -> None:
    drop(MESSAGE, "final_output_json_schema")


@variant
def top_p_in_no_spelling() -> None:
    drop(MESSAGE, "topP", "top_p")


@variant
def final_schema_in_no_spelling() -> None:
    drop(MESSAGE, "finalOutputJsonSchema", "final_output_json_schema")


@variant
def temperature_of_its_own() -> None:
    in_params(MESSAGE, lambda params, asked, _: params.update(temperature=1 if asked.temperature is None else asked.temperature))


@variant
def top_p_of_its_own() -> None:
    def change(params: Any, *_: Any) -> None:
        if params["topP"] is None:
            params["topP"] = params["top_p"] = 1

    in_params(MESSAGE, change)


@variant
def text_format_when_unasked() -> None:
    def change(params: Any, *_: Any) -> None:
        if params["responseFormat"] is None:
            params["responseFormat"] = params["response_format"] = {"type": "text"}

    in_params(MESSAGE, change)


@variant
def empty_schema_when_unasked() -> None:
    def change(params: Any, *_: Any) -> None:
        if params["finalOutputJsonSchema"] is None:
            params["finalOutputJsonSchema"] = params["final_output_json_schema"] = {}

    in_params(MESSAGE, change)


@variant
def usage_always_asked_for() -> None:
    put(MESSAGE, includeUsage=True, include_usage=True)


@variant
def usage_never_asked_for() -> None:
    put(MESSAGE, includeUsage=False, include_usage=False)


@variant
def usage_null_when_unasked() -> None:
    def change(params: Any, *_: Any) -> None:
        if not params["includeUsage"]:
            params["includeUsage"] = params["include_usage"] = None

    in_params(MESSAGE, change)


@variant
def zero_is_nothing() -> None:
    in_params(MESSAGE, lambda params, *_: params.update(temperature=params["temperature"] or None))


@variant
def temperature_dropped() -> None:
    drop(MESSAGE, "temperature")


@variant
def top_p_as_temperature() -> None:
    in_params(MESSAGE, lambda params, *_: params.update(topP=params["temperature"], top_p=params["temperature"]))


@variant
def limit_dropped() -> None:
    put(MESSAGE, maxOutputTokens=None, max_output_tokens=None)


@variant
def limit_fixed() -> None:
    put(MESSAGE, maxOutputTokens=65000, max_output_tokens=65000)


@variant
def limit_as_text() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if asked.max_tokens is not None:
            params["maxOutputTokens"] = params["max_output_tokens"] = str(asked.max_tokens)

    in_params(MESSAGE, change)


@variant
def schema_dropped() -> None:
    put(MESSAGE, finalOutputJsonSchema=None, final_output_json_schema=None)


@variant
def schema_in_its_wrapping() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if asked.schema is not None:
            params["finalOutputJsonSchema"] = params["final_output_json_schema"] = {"name": "x", "schema": asked.schema}

    in_params(MESSAGE, change)


@variant
def schema_without_closing() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if asked.schema is not None:
            less = {key: value for key, value in asked.schema.items() if key != "additionalProperties"}
            params["finalOutputJsonSchema"] = params["final_output_json_schema"] = less

    in_params(MESSAGE, change)


@variant
def format_dropped() -> None:
    put(MESSAGE, responseFormat=None, response_format=None)


@variant
def response_format_only_on_chat() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if asked.endpoint == "responses" and "response_format" in asked.body:
            put_null(params)

    def put_null(params: Any) -> None:
        for key in ("responseFormat", "response_format", "finalOutputJsonSchema", "final_output_json_schema"):
            params[key] = None

    in_params(MESSAGE, change)


@variant
def json_object_makes_a_schema() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if asked.format and asked.format["type"] == "json_object":
            params["finalOutputJsonSchema"] = params["final_output_json_schema"] = {"type": "object"}

    in_params(MESSAGE, change)


@variant
def format_is_its_type_alone() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if asked.format:
            params["responseFormat"] = params["response_format"] = {"type": asked.format["type"]}

    in_params(MESSAGE, change)


@variant
def message_says_parallel_calls() -> None:
    in_params(MESSAGE, lambda params, asked, _: asked.tools.parallel or params.update(parallelToolCalls=False))


@variant
def turn_says_parallel_calls() -> None:
    in_params("sendUserTurn", lambda params, asked, _: asked.tools.parallel or params.update(parallelToolCalls=False))


@variant
def conversation_says_parallel_calls() -> None:
    in_params("newConversation", lambda params, asked, _: asked.tools.parallel or params.update(parallelToolCalls=False))


@variant
def json_object_dropped() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if asked.schema is None:
            params["responseFormat"] = params["response_format"] = None

    in_params(MESSAGE, change)


@variant
def reasoning_on_chat() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if asked.effort:
            params["reasoning"] = {"effort": asked.effort}

    in_params(MESSAGE, change)


@variant
def reasoning_without_effort() -> None:
    in_params(MESSAGE, lambda params, asked, _: asked.endpoint == "chat" or params.setdefault("reasoning", {"effort": None}))


@variant
def reasoning_only_when_explicit() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if not asked.body.get("reasoning"):
            params.pop("reasoning", None)

    in_params(MESSAGE, change)


@variant
def reasoning_as_a_word() -> None:
    in_params(MESSAGE, lambda params, asked, _: "reasoning" in params and params.update(reasoning=asked.effort))


@variant
def reasoning_lost_without_a_turn() -> None:
    in_params(MESSAGE, lambda params, _, settings: settings.skip_turn and params.pop("reasoning", None))


@variant
def message_has_tools_of_its_own() -> None:
    in_params(MESSAGE, lambda params, *_: params.setdefault("tools", {"definitions": [{"type": "web_search"}]}))


@variant
def user_passed_on() -> None:
    in_params(MESSAGE, lambda params, asked, _: "user" in asked.body and params.update(user=asked.body["user"]))


@variant
def metadata_passed_on() -> None:
    in_params(MESSAGE, lambda params, asked, _: params.update(metadata=asked.body.get("metadata")))
