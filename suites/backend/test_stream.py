"""The stream. Source: docs/contract/lite.md, "Response Streaming (SSE)" to "Web search events"; the openai package's types."""

from __future__ import annotations

import json

import pytest

from codex_replay.plugin.backend.conversation import Backend, SubjectFailure, event_problems, stream_problems
from suites.backend.expected import (
    BROKEN,
    CALL_ADD,
    KINDS,
    body,
    called,
    completed,
    greeted,
    kinds,
    must_add_up,
    must_be_one_response,
    must_come_once,
    searched,
    user,
)
from suites.lite_protocol import FUNCTION_TOOL

#: Each case runs over HTTP and over a WebSocket.
pytestmark = pytest.mark.both_transports


@pytest.mark.parametrize("mode", ["chatgpt", "api_key"])
@pytest.mark.spec("stream-content-type", "LITE-48")
@pytest.mark.http_only
def test_it_is_an_event_stream(backend: Backend, mode: str) -> None:
    """The Content-Type of the response is text/event-stream."""
    if not backend.live:
        backend.login(mode)
    assert greeted(backend).header("content-type").partition(";")[0].strip() == "text/event-stream"


@pytest.mark.spec("stream-names", "LITE-48", "LITE-49", "LITE-50", "LITE-51", "LITE-52", "LITE-53", "LITE-54")
@pytest.mark.http_only
def test_each_event_has_its_type_for_a_name(backend: Backend) -> None:
    """The name of each event equals the `type` in its data, so a client may read either of them."""
    blocks = [block for block in greeted(backend).blocks if block.dispatched]
    assert [block.event.decode() for block in blocks] == [json.loads(block.data or b"")["type"] for block in blocks]


@pytest.mark.spec("stream-whole-events", "LITE-54")
@pytest.mark.http_only
def test_no_event_is_left_unended(backend: Backend) -> None:
    """A blank line ends every event, including the last one."""
    assert [block.raw for block in greeted(backend).blocks if not block.complete] == []


@pytest.mark.spec("stream-at-once", "LITE-52", "LITE-53", "REAL-101")
@pytest.mark.http_only
def test_events_are_sent_while_the_model_writes(backend: Backend) -> None:
    """The client gets the events of a finished item before the model writes the next item."""
    backend.says("one", {"type": "gate", "name": "after-one"}, "two")
    answer = completed(backend.ask(body(), midway=lambda: backend.release("after-one")))
    assert [item["content"][0]["text"] for item in answer.items] == ["one", "two"]


@pytest.mark.spec("stream-side-by-side", source="openai 3.52.0, the types of its events", says="Response.id")
@pytest.mark.http_only
def test_two_streams_at_the_same_time(backend: Backend) -> None:
    """During a stream, another request is answered, and each client gets only the events of its own response."""
    backend.says("one", {"type": "gate", "name": "after-one"}, "two")
    others = []

    def midway() -> None:
        try:
            others.append(greeted(backend))
        except SubjectFailure as error:
            pytest.fail(f"The backend did not answer a second request while the first stream was open.\n{error}")
        finally:
            backend.release("after-one")

    answer = completed(backend.ask(body(), midway=midway))
    assert [item["content"][0]["text"] for item in answer.items] == ["one", "two"]
    for each in (answer, others[0]):
        must_be_one_response(each.events)
    assert answer.events[0]["response"]["id"] != others[0].events[0]["response"]["id"]


@pytest.mark.spec("stream-created", "LITE-48")
def test_created_comes_first(backend: Backend) -> None:
    """`response.created` is the first event, comes once, and has an unfinished response."""
    answer = greeted(backend)
    must_come_once(answer, "response.created", 0)
    assert answer.events[0]["response"]["status"] == "in_progress"
    assert answer.events[0]["response"]["output"] == []


@pytest.mark.spec("stream-in-progress", "LITE-49")
def test_in_progress_comes_second(backend: Backend) -> None:
    """`response.in_progress` comes once, after `response.created`."""
    must_come_once(greeted(backend), "response.in_progress", 1)


@pytest.mark.spec("stream-completed", "LITE-54")
def test_completed_comes_last(backend: Backend) -> None:
    """`response.completed` is the last event and comes once."""
    found = kinds(greeted(backend))
    assert found.index("response.completed") == len(found) - 1


@pytest.mark.spec("stream-completed-status", "LITE-54")
def test_completed_says_completed(backend: Backend) -> None:
    """The response in `response.completed` has the status `completed`."""
    response = greeted(backend).events[-1]["response"]
    assert (response["status"], response.get("error")) == ("completed", None)


@pytest.mark.spec("stream-completed-id", "REAL-112")
def test_a_response_keeps_its_id(backend: Backend) -> None:
    """The response has the same id from the first event to the last; without an id the real client fails."""
    ids = {event["response"].get("id") for event in greeted(backend).events if "response" in event}
    assert len(ids) == 1
    assert isinstance(ids.pop(), str)


@pytest.mark.spec("stream-completed-output", "LITE-54")
def test_completed_has_the_whole_output(backend: Backend) -> None:
    """`response.completed` has all finished items, in the order in which they were streamed."""
    answer = greeted(backend)
    assert answer.events[-1]["response"]["output"] == answer.items


@pytest.mark.spec("stream-usage", source="openai 3.52.0, the types of its events", says="ResponseUsage")
def test_completed_has_the_usage(backend: Backend) -> None:
    """`usage` has the numbers of tokens, and the total is their sum."""
    usage = greeted(backend).events[-1]["response"].get("usage")
    assert usage, f"expected the numbers of tokens in the usage of response.completed, got {usage}"
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["output_tokens"] > 0


@pytest.mark.spec("stream-model", "LITE-31")
def test_the_response_names_the_model(backend: Backend) -> None:
    """The response names the requested model or a version of it."""
    assert greeted(backend).events[-1]["response"]["model"].startswith("gpt-5.2-codex")


@pytest.mark.spec("stream-numbers", source="openai 3.52.0, the types of its events", says="sequence_number")
def test_events_are_numbered(backend: Backend) -> None:
    """`sequence_number` counts the events from 0."""
    answer = greeted(backend)
    numbers = [event.get("sequence_number") for event in answer.events]
    wrong = next((i for i, number in enumerate(numbers) if type(number) is not int or number != i), None)
    assert wrong is None, f"event {wrong}: expected sequence_number {wrong}, got {numbers[wrong]!r}\n{answer.report_on()}"


@pytest.mark.spec("stream-added", "LITE-50")
def test_an_item_is_added_before_anything_of_it(backend: Backend) -> None:
    """For each item, the stream first adds the item, then its part, and then sends the deltas."""
    found = [
        kind
        for kind in kinds(greeted(backend))
        if kind in ("response.output_item.added", "response.content_part.added", TEXT_DELTA)
    ]
    assert "response.output_item.added" in found
    assert found.index("response.output_item.added") < found.index("response.content_part.added") < found.index(TEXT_DELTA)


TEXT_DELTA = "response.output_text.delta"


@pytest.mark.spec("stream-deltas", "LITE-52")
def test_deltas_join_to_the_text(backend: Backend) -> None:
    """The joined deltas equal the text in the `done` event, in the item and in the response."""
    answer = greeted(backend)
    texts = [part["text"] for item in answer.items if item["type"] == "message" for part in item["content"]]
    assert answer.text
    assert answer.text == "".join(texts)
    assert answer.text == "".join(event["text"] for event in answer.of("response.output_text.done"))


@pytest.mark.spec("stream-item-done", "LITE-53")
def test_every_item_that_was_added_is_done(backend: Backend) -> None:
    """Each item that the stream adds is finished exactly once, with the same id and type."""
    answer = greeted(backend)
    added, done = (
        [(e["output_index"], e["item"]["id"], e["item"]["type"]) for e in answer.of(f"response.output_item.{end}")]
        for end in ("added", "done")
    )
    assert added == sorted(done)
    assert [event["item"]["status"] for event in answer.of("response.output_item.done") if "status" in event["item"]] != []


@pytest.mark.spec("stream-indexes", "LITE-50")
def test_deltas_name_the_item_that_they_belong_to(backend: Backend) -> None:
    """Each delta has the id and the index of the item to which it belongs."""
    answer = greeted(backend)
    items = {event["output_index"]: event["item"]["id"] for event in answer.of("response.output_item.added")}
    deltas = answer.of(TEXT_DELTA)
    assert [items.get(event["output_index"]) for event in deltas] == [event["item_id"] for event in deltas]


@pytest.mark.spec("stream-two-answers", source="openai 3.52.0, the types of its events", says="Response.id")
def test_two_responses_have_two_ids(backend: Backend) -> None:
    """Two responses have different ids, and their items have different ids, too."""
    one, other = greeted(backend), greeted(backend)
    assert one.events[0]["response"]["id"] != other.events[0]["response"]["id"]
    assert {item["id"] for item in one.items}.isdisjoint(item["id"] for item in other.items)


@pytest.mark.spec("call-added", "LITE-55")
def test_a_call_is_added_empty(backend: Backend) -> None:
    """The event that adds a call has the name and the call id of the call, and empty arguments."""
    (item,) = [e["item"] for e in called(backend).of("response.output_item.added") if e["item"]["type"] == "function_call"]
    assert (item["name"], item["arguments"], item["status"]) == ("add", "", "in_progress")
    assert item["call_id"]


@pytest.mark.spec("call-deltas", "LITE-51", "LITE-56")
def test_deltas_build_the_arguments(backend: Backend) -> None:
    """The joined deltas equal the finished arguments of the call, which are valid for the tool's schema."""
    answer = called(backend)
    joined = "".join(event["delta"] for event in answer.of("response.function_call_arguments.delta"))
    found = answer.of("response.function_call_arguments.done")
    assert len(found) == 1, f"expected one response.function_call_arguments.done for one call, got {len(found)}"
    (done,) = found
    (item,) = [item for item in answer.items if item["type"] == "function_call"]
    assert joined == done["arguments"] == item["arguments"]
    assert set(json.loads(joined)) == {"a", "b"}


@pytest.mark.spec("call-done", "LITE-53")
def test_a_call_is_done_with_the_id_that_it_was_added_with(backend: Backend) -> None:
    """A call has the same call id in `added` and in `done`, because its output needs this id."""
    answer = called(backend)
    (added,) = [e["item"] for e in answer.of("response.output_item.added") if e["item"]["type"] == "function_call"]
    (done,) = [item for item in answer.items if item["type"] == "function_call"]
    assert (done["call_id"], done["name"], done["status"]) == (added["call_id"], "add", "completed")


@pytest.mark.spec("call-round-trip", "LITE-57")
def test_a_call_can_be_sent_back_as_it_came(backend: Backend) -> None:
    """The backend accepts a follow-up with the finished call and its output."""
    (item,) = [item for item in called(backend).items if item["type"] == "function_call"]
    output = {"type": "function_call_output", "call_id": item["call_id"], "output": "5"}
    completed(backend.ask(body(user(CALL_ADD), item, output, tools=[FUNCTION_TOOL])))


@pytest.mark.spec("search-added", "LITE-60")
def test_a_search_is_added(backend: Backend) -> None:
    """The stream adds the item of a search before it sends other events of the search."""
    answer = searched(backend)
    added = [event for event in answer.of("response.output_item.added") if event["item"]["type"] == "web_search_call"]
    assert added
    first = answer.of("response.web_search_call.in_progress")[0]
    assert answer.events.index(added[0]) < answer.events.index(first)
    assert first["item_id"] == added[0]["item"]["id"]


@pytest.mark.spec("search-events", "LITE-61")
def test_a_search_goes_its_way(backend: Backend) -> None:
    """The events of a search come in the order in_progress, searching, completed."""
    answer = searched(backend)
    first = answer.of("response.web_search_call.in_progress")[0]["item_id"]
    steps = [
        str(e["type"]).rpartition(".")[2] for e in answer.events if "web_search_call." in str(e["type"]) and e["item_id"] == first
    ]
    assert steps == ["in_progress", "searching", "completed"]


@pytest.mark.spec("search-action", "LITE-62")
def test_a_search_is_done_with_its_action(backend: Backend) -> None:
    """The finished item of a search has the action, so that a client can show the query."""
    items = [item for item in searched(backend).items if item["type"] == "web_search_call"]
    assert items
    for item in items:
        assert item["status"] == "completed"
        assert item["action"]["type"] in ("search", "open_page", "find_in_page")
    assert items[0]["action"].get("query")


@pytest.mark.spec("events-valid", source="openai 3.52.0, the types of its events", says="each event is valid for its type")
@pytest.mark.parametrize("kind", KINDS)
def test_every_event_is_what_its_type_says(backend: Backend, kind: str) -> None:
    """Each event has exactly the keys of its type, with values of the right types."""
    backend.says(*KINDS[kind])
    assert [problem for event in completed(backend.ask(body())).events for problem in event_problems(event)] == []


@pytest.mark.spec("events-coherent", "LITE-48", "LITE-49", "LITE-50", "LITE-51", "LITE-52", "LITE-53", "LITE-54")
@pytest.mark.parametrize("kind", KINDS)
def test_the_events_of_a_stream_hang_together(backend: Backend, kind: str) -> None:
    """The events of a stream are consistent: `added` before `done`, deltas between them, joined deltas equal to the whole."""
    backend.says(*KINDS[kind])
    assert stream_problems(completed(backend.ask(body())).events) == []


@pytest.mark.spec("events-broken", source="openai 3.52.0, the types of its events", says="each event has the form of its type")
@pytest.mark.parametrize("kind", BROKEN)
def test_every_event_of_a_broken_stream_is_what_its_type_says(backend: Backend, kind: str) -> None:
    """A reply that fails or is incomplete has valid and consistent events, too."""
    backend.says(*BROKEN[kind])
    events = backend.ask(body()).events
    assert [problem for event in events for problem in event_problems(event)] == []
    assert stream_problems(events) == []
    must_be_one_response(events)
    must_add_up(events)
    assert events[-1]["response"]["output"] == [event["item"] for event in events if event["type"] == "response.output_item.done"]


@pytest.mark.spec("events-add-up", source="openai 3.52.0, its client", says="how a stream is put together")
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_adds_up(backend: Backend, kind: str) -> None:
    """The stream adds items and parts empty, and a finished part equals its joined deltas, because clients join the deltas."""
    backend.says(*KINDS[kind])
    must_add_up(completed(backend.ask(body())).events)


@pytest.mark.spec("events-one-response", source="openai 3.52.0, the types of its events", says="Response")
@pytest.mark.parametrize("kind", KINDS)
def test_all_events_are_about_one_response(backend: Backend, kind: str) -> None:
    """All events with a response contain the same response; only the members that show its progress may differ."""
    backend.says(*KINDS[kind])
    must_be_one_response(completed(backend.ask(body())).events)


@pytest.mark.spec("events-parallel", "LITE-68")
def test_parallel_calls_have_call_ids_of_their_own(backend: Backend) -> None:
    """Parallel calls have different call ids, because each output names its call by id."""
    backend.says(*KINDS["parallel calls"])
    items = completed(backend.ask(body())).items
    assert len({item["call_id"] for item in items}) == len(items) == 3
    assert [json.loads(item["arguments"]) for item in items] == [{"a": 0}, {"a": 1}, {"a": 2}]


@pytest.mark.spec("events-long-arguments", "LITE-51", "LITE-56")
def test_long_arguments_come_in_deltas(backend: Backend) -> None:
    """The joined deltas of long arguments equal the finished arguments exactly."""
    given = {"text": "zoë-漢字-🦀-e\u0301-\ufb01 " * 400}
    backend.says({"type": "function_call", "name": "add", "arguments": given})
    answer = completed(backend.ask(body()))
    deltas = [event["delta"] for event in answer.of("response.function_call_arguments.delta")]
    assert len(deltas) > 1
    assert "".join(deltas) == answer.items[0]["arguments"]
    assert json.loads("".join(deltas)) == given


@pytest.mark.spec("events-custom", "LITE-47")
def test_a_custom_call_carries_its_input_as_text(backend: Backend) -> None:
    """For a custom tool, the joined deltas equal the input of the call, which is plain text and not JSON."""
    backend.says(*KINDS["custom tool call"])
    answer = completed(backend.ask(body()))
    joined = "".join(event["delta"] for event in answer.of("response.custom_tool_call_input.delta"))
    assert joined == answer.items[0]["input"] == "*** Begin Patch\n*** End Patch\n"


@pytest.mark.spec("events-reasoning", "LITE-40")
def test_reasoning_carries_summary_and_encrypted_content(backend: Backend) -> None:
    """A reasoning item has the parts of a summary, and `encrypted_content`, which a client must send back."""
    backend.says(*KINDS["reasoning"])
    answer = completed(backend.ask(body()))
    assert [part["text"] for part in answer.items[0]["summary"]] == ["One", "Two"]
    assert answer.items[0]["encrypted_content"] == "x"
    parts = [event["delta"] for event in answer.of("response.reasoning_summary_text.delta")]
    assert "".join(parts) == "OneTwo"


@pytest.mark.spec("events-failed", "REAL-102")
@pytest.mark.parametrize("code", ["context_length_exceeded", "insufficient_quota", "rate_limit_exceeded", "server_error"])
def test_a_failure_ends_the_stream_with_its_code(backend: Backend, code: str) -> None:
    """`response.failed` is the last event and has an error code that the real client knows."""
    backend.says("half", {"type": "failed", "code": code})
    answer = backend.ask(body())
    assert kinds(answer)[-1] == "response.failed"
    response = answer.events[-1]["response"]
    assert response.get("error"), "expected the error of the response in response.failed, got none"
    assert (response["status"], response["error"]["code"]) == ("failed", code)
    assert response["error"]["message"]


@pytest.mark.spec("events-incomplete", "REAL-99")
def test_an_incomplete_response_ends_the_stream(backend: Backend) -> None:
    """`response.incomplete` is the last event and has the reason."""
    backend.says("half", {"type": "incomplete", "reason": "max_output_tokens"})
    answer = backend.ask(body())
    assert kinds(answer)[-1] == "response.incomplete"
    response = answer.events[-1]["response"]
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


@pytest.mark.spec("service-errors", "REAL-105", "REAL-106", "REAL-107", "REAL-108", "REAL-109")
@pytest.mark.parametrize("status", [400, 403, 404, 429, 500, 503])
def test_an_error_of_the_service_reaches_the_client(backend: Backend, status: int) -> None:
    """The client gets the status, the error and `retry-after` of the service: Codex acts on the status and shows the error."""
    error = {"message": "Wait 1.898s \u2014 s\u00ec.", "type": "usage_limit_reached", "param": None, "code": None, "resets_at": 1}
    backend.says(status=status, error=error, headers={"retry-after": "7"})
    answer = backend.ask(body())
    assert answer.status == status, f"expected status {status}, which the service sent, got {answer.status}\n{answer.report_on()}"
    assert answer.error == error
    assert answer.header("retry-after") == "7", f"expected `retry-after: 7`, which the service sent, got {answer.headers}"
