"""Clients that answer calls wrongly."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from codex_replay.reference.lite_client import reply, tools
from codex_replay.reference.lite_client.errors import Problem
from tests.miniatures.lite_clients.patching import Client, Reply, Tools, after, in_body, variant


def in_follow_up(change: Callable[[list[Any]], list[Any]]) -> None:
    after(Client, "follow_up", lambda items, *_: change(items))


def is_output(item: dict[str, Any]) -> bool:
    return str(item.get("type")).endswith("_output")


@variant
def output_without_call() -> None:
    """Sends the outputs without their calls."""
    in_follow_up(lambda items: [item for item in items if not str(item.get("type")).endswith("_call")])


@variant
def call_without_output() -> None:
    """Sends the calls without their outputs."""
    in_follow_up(lambda items: [item for item in items if not is_output(item)])


@variant
def forgets_its_thoughts() -> None:
    """Leaves the reasoning out of the next input."""
    in_follow_up(lambda items: [item for item in items if item.get("type") != "reasoning"])


@variant
def forgets_what_its_thoughts_said() -> None:
    """Sends the reasoning back without its summary."""
    in_follow_up(lambda items: [{**item, "summary": []} if item.get("type") == "reasoning" else item for item in items])


@variant
def thinks_afterwards() -> None:
    """Sends the reasoning behind the calls that it led to."""
    in_follow_up(lambda items: sorted(items, key=lambda item: item.get("type") == "reasoning"))


@variant
def output_before_call() -> None:
    """Sends the outputs before their calls."""
    in_follow_up(lambda items: sorted(items, key=lambda item: str(item.get("type")).endswith("_call")))


@variant
def forgets_the_prompt() -> None:
    """Sends only the last call and its output."""
    in_follow_up(lambda items: [item for item in items if item.get("type") != "message"])


@variant
def forgets_earlier_calls() -> None:
    """Sends only the prompt and what came of the last response."""
    old = Client.follow_up
    Client.follow_up = lambda self, given, answer: old(self, given[:1], answer)  # type: ignore[method-assign]


@variant
def previous_response() -> None:
    """Refers to the previous response instead of sending the conversation."""

    def refer(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "previous_response_id": "resp_1"} if len(body["input"]) > 1 else body

    in_body(refer)


@variant
def stops_at_calls() -> None:
    """Takes the first response for the answer, calls or not."""
    Reply.calls = property(lambda self: [])  # type: ignore[assignment]


@variant
def one_round() -> None:
    """Does not answer the calls of a follow-up."""
    old = Client.ask

    def ask(self: Any, given: list[Any]) -> Any:
        answer = old(self, given)
        if len(given) > 1:
            answer._items = {k: v for k, v in answer._items.items() if v["type"] not in reply.CALLS}
        return answer

    Client.ask = ask  # type: ignore[method-assign]


@variant
def error_as_json() -> None:
    """Sends a failed call's output as a JSON object."""
    tools.failure = lambda what: json.dumps({"error": what})


@variant
def unknown_function_ends_it() -> None:
    """Gives up when a function is called that it does not have."""
    old = Tools.find

    def find(self: Any, name: str, given: object) -> Any:
        found = old(self, name, given)
        if found is None:
            raise Problem(f"There is no function {name}.")
        return found

    Tools.find = find  # type: ignore[method-assign]


@variant
def bad_arguments_end_it() -> None:
    """Gives up when the arguments of a call are not JSON."""
    old = Tools.call

    def call(self: Any, item: Any) -> Any:
        if item["type"] == "function_call":
            try:
                json.loads(item["arguments"])
            except ValueError:
                raise Problem("The arguments are not JSON.") from None
        return old(self, item)

    Tools.call = call  # type: ignore[method-assign]


@variant
def bad_arguments_are_empty() -> None:
    """Calls the function without arguments when they are not JSON."""
    old = Tools.call

    def call(self: Any, item: Any) -> Any:
        try:
            json.loads(item.get("arguments", "{}"))
        except ValueError:
            return "5"
        return old(self, item)

    Tools.call = call  # type: ignore[method-assign]


@variant
def truncates_output() -> None:
    """Cuts an output after 10,000 characters."""
    after(Tools, "call", lambda output, *_: output[:10_000])


@variant
def empty_output_is_none() -> None:
    """Does not answer a call that puts out nothing."""
    after(Tools, "outputs", lambda items, *_: [item for item in items if item["output"]])


@variant
def outputs_by_position() -> None:
    """Gives the calls their outputs in the order in which they finish."""

    def shuffle(items: list[Any], _: Any, calls: list[Any]) -> list[Any]:
        return [{**item, "call_id": call["call_id"]} for item, call in zip(items, calls, strict=True)]

    after(Tools, "outputs", shuffle)


@variant
def first_call_only() -> None:
    """Answers only the first of parallel calls, and forgets the others."""

    def first(items: list[Any]) -> list[Any]:
        calls = [item for item in items if str(item.get("type")).endswith("_call")]
        kept = calls[0]["call_id"] if calls else None
        return [item for item in items if item.get("call_id", kept) == kept]

    in_follow_up(first)


@variant
def ignores_arguments() -> None:
    """Gives the first result of the function, whatever it is called with."""
    Tools.find = lambda self, name, given: next((r for r in self.results if r["name"] == name), None)  # type: ignore[method-assign]


@variant
def custom_output_as_function() -> None:
    """Answers a freeform call with a function_call_output."""
    tools.OUTPUTS = dict.fromkeys(tools.OUTPUTS, "function_call_output")


@variant
def custom_calls_are_ignored() -> None:
    """Does not see freeform calls."""
    reply.CALLS = {"function_call": "arguments"}


@variant
def answers_web_search() -> None:
    """Answers a web search as if it were a call of its own."""

    def add(items: list[Any], _: Any, __: Any, answer: Any) -> list[Any]:
        searches = [item for item in answer.items if item["type"] == "web_search_call"]
        return [*items, *({"type": "function_call_output", "call_id": item["id"], "output": "ok"} for item in searches)]

    after(Client, "follow_up", add)


@variant
def searches_are_calls() -> None:
    """Goes on asking after a response with a web search."""
    Reply.calls = property(lambda self: [i for i in self.items if str(i["type"]).endswith("_call")])  # type: ignore[assignment]
    after(Tools, "outputs", lambda items, *_: items)
    tools.OUTPUTS["web_search_call"] = "function_call_output"


@variant
def search_needs_a_query() -> None:
    """Falls over when the action of a web search is not a search."""
    old = Reply.done

    def done(self: Any, event: dict[str, Any]) -> None:
        if event["item"]["type"] == "web_search_call":
            event["item"]["action"]["query"]
        old(self, event)

    Reply.done = done  # type: ignore[method-assign]


@variant
def a_failed_search_is_the_end() -> None:
    """Gives up when a web search fails."""
    old = Reply.done

    def done(self: Any, event: dict[str, Any]) -> None:
        if event["item"].get("status") == "failed":
            raise Problem("The web search failed.")
        old(self, event)

    Reply.done = done  # type: ignore[method-assign]
