"""Members of other types, and streams that do not add up."""

from __future__ import annotations

from typing import Any

from codex_replay.reference.proxy import app
from codex_replay.reference.proxy.answering import responses
from codex_replay.reference.proxy.answering.chat import ChatAnswer
from codex_replay.reference.proxy.answering.responses import ResponsesAnswer
from codex_replay.reference.proxy.errors import ProxyError
from tests.strength.proxy_variants.patching import after, variant
from tests.strength.proxy_variants.wrong_answers import in_events, in_values, in_whole


@variant
def tools_of_a_response_as_text() -> None:
    in_whole(ResponsesAnswer, lambda body: body.update(tools="none"))


@variant
def chat_index_as_text() -> None:
    in_whole(ChatAnswer, lambda body: body["choices"][0].update(index="0"))


@variant
def errors_as_text() -> None:
    ProxyError.body = property(lambda self: self.message)


@variant
def models_listed_twice() -> None:
    after(app.models, "listed", lambda found: [*found, *found])


@variant
def cached_tokens_guessed() -> None:
    def change(found: Any, *_: Any) -> Any:
        if found:
            details = found.get("input_tokens_details") or found["prompt_tokens_details"]
            details["cached_tokens"] += 1
        return found

    after(responses, "_spent", change)
    after(ChatAnswer, "_spent", change)


@variant
def parts_added_with_text() -> None:
    in_events("response.content_part.added", lambda value: value["part"].update(text="Hello"))


@variant
def settings_forgotten_at_the_end() -> None:
    in_events("response.completed", lambda value: value["response"].update(temperature=None))


@variant
def chunks_of_several_times() -> None:
    count = iter(range(1, 1_000_000))
    in_values(ChatAnswer, lambda value: value.update(created=next(count)))
