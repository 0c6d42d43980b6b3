"""The routes for stored data: responses, conversations, a compacted conversation, and the number of tokens of a request.

Sources: API reference, "Responses" (get, delete, cancel, input items, input token counts, compact) and "Conversations".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from codex_fakes.backend.answers import refuse, request_id, respond_json
from codex_fakes.backend.exchange import Exchange
from codex_fakes.backend.ledger import Entry
from codex_fakes.backend.play import STREAM_TYPE
from codex_fakes.backend.rules.auth import Asked
from codex_fakes.backend.rules.table import AUTH_RULES, Violation, first_violation
from codex_fakes.backend.sessions import Session
from codex_fakes.backend.state import stored as responses
from codex_fakes.backend.state.conversations import Conversation, listed, page
from codex_fakes.backend.state.stored import Stored
from codex_fakes.model import unstreamed
from codex_replay.core.text.numbers import whole_number
from codex_replay.core.wire.client_json import read
from codex_replay.core.wire.json_text import NotJson
from codex_replay.core.wire.percent import query_values, unquoted
from codex_replay.protocol.responses.items import CREATED_AT, reply
from codex_replay.protocol.responses.steps import event_bytes
from codex_replay.protocol.script.expect import input_items
from codex_replay.protocol.script.script import Turn

_RESPONSE = re.compile(r"/responses/([^/]+)(/cancel|/input_items)?$")
_CONVERSATION = re.compile(r"/conversations/([^/]+)(?:(/items)(?:/([^/]+))?)?$")
#: What is served beside the routes of a fixed ending, for the message about a path that is not served.
ROUTES = (
    "GET, DELETE .../responses/ID",
    "POST .../responses/ID/cancel",
    "GET .../responses/ID/input_items",
    "GET, POST, DELETE .../conversations/ID",
    "GET, POST .../conversations/ID/items",
    "GET, DELETE .../conversations/ID/items/ID",
)


async def answer(exchange: Exchange, session: Session, entry: Entry, path: str, query: str) -> bool:
    """Answer a request for stored responses or conversations. Return False if the path does not belong to stored data."""
    method, given = exchange.request.method, query_values(query)
    options = {key: values[0] for key, values in given.items()}
    if found := _RESPONSE.search(path):
        asked = (method, found[2] or "")
        if asked not in (("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/input_items")):
            return False
        if _may(exchange, session, entry):
            id_ = unquoted(found[1])
            if (stored := session.responses.get(id_)) is None:
                refuse(exchange, entry, Violation("stored", 404, None, f"Response with id '{id_}' not found."))
            else:
                include = [*given.get("include", ()), *given.get("include[]", ())]
                await _response(exchange, session, entry, stored, id_, asked, options, include)
        return True
    if found := _CONVERSATION.search(path):
        asked = (method, found[2] or "")
        if asked not in _ON_CONVERSATION if found[3] is None else method not in ("GET", "DELETE"):
            return False
        if _may(exchange, session, entry):
            id_ = unquoted(found[1])
            if (conversation := session.conversations.get(id_)) is None:
                refuse(exchange, entry, _no_conversation(id_))
            elif found[3] is not None:
                _item(exchange, entry, conversation, unquoted(found[3]))
            else:
                _conversation(exchange, session, entry, conversation, asked, options)
        return True
    return False


async def _response(
    exchange: Exchange,
    session: Session,
    entry: Entry,
    stored: Stored,
    id_: str,
    asked: tuple[str, str],
    options: Mapping[str, str],
    include: Sequence[str],
) -> None:
    if asked == ("DELETE", ""):
        session.responses.delete(id_)
        respond_json(exchange, entry, 200, {"id": id_, "object": "response", "deleted": True})
    elif asked[1] == "/input_items":
        items = [
            listed(item, f"{'msg' if item.get('role') else 'item'}_in_{i}") for i, item in enumerate(input_items(stored.body))
        ]
        respond_json(exchange, entry, 200, page(items, options))
    elif asked[1] == "/cancel" and stored.background is None:
        refuse(exchange, entry, Violation("cancel", 400, None, "Cannot cancel a synchronous response."))
    elif asked[1] == "/cancel":
        stored.cancel()
        respond_json(exchange, entry, 200, stored.response())
    elif options.get("stream") == "true":
        asked_for = whole_number(options.get("starting_after", ""))
        after = -1 if asked_for is None else asked_for
        entry.answer, entry.status = "route", 200
        exchange.start(200, [STREAM_TYPE, ("cache-control", "no-cache"), *request_id(exchange, f"n{entry.n}")])
        await exchange.wait_for(stored.settled())
        events = stored.events(include)
        exchange.write([event_bytes(event) for event in events if event.get("sequence_number", after + 1) > after])
        exchange.end()
    else:
        respond_json(exchange, entry, 200, stored.response(include))


_ON_CONVERSATION = (("GET", ""), ("POST", ""), ("DELETE", ""), ("GET", "/items"), ("POST", "/items"))


def _conversation(
    exchange: Exchange,
    session: Session,
    entry: Entry,
    conversation: Conversation,
    asked: tuple[str, str],
    options: Mapping[str, str],
) -> None:
    if asked == ("DELETE", ""):
        session.conversations.delete(conversation.id)
        respond_json(exchange, entry, 200, {"id": conversation.id, "object": "conversation.deleted", "deleted": True})
    elif asked == ("GET", "/items"):
        respond_json(exchange, entry, 200, page(conversation.items, options))
    elif asked[0] == "GET":
        respond_json(exchange, entry, 200, conversation.shown())
    elif (body := _body(exchange, entry)) is not None:
        if asked[1]:
            added = conversation.add(_objects(body.get("items")))
            session.conversations.trim()
            respond_json(exchange, entry, 200, page(added, {"order": "asc", "limit": "100"}))
        else:
            conversation.metadata = body.get("metadata") or {}
            respond_json(exchange, entry, 200, conversation.shown())


def _item(exchange: Exchange, entry: Entry, conversation: Conversation, id_: str) -> None:
    item = conversation.item(id_)
    if item is None:
        message = f"Item with id '{id_}' not found in conversation '{conversation.id}'."
        refuse(exchange, entry, Violation("conversation-item", 404, None, message))
    elif exchange.request.method == "DELETE":
        conversation.items.remove(item)
        respond_json(exchange, entry, 200, conversation.shown())
    else:
        respond_json(exchange, entry, 200, item)


async def new_conversation(exchange: Exchange, session: Session, entry: Entry, path: str, query: str) -> None:
    """Create a conversation, with or without items."""
    if _may(exchange, session, entry) and (body := _body(exchange, entry)) is not None:
        conversation = session.conversations.create(body.get("metadata") or {})
        conversation.add(_objects(body.get("items")))
        session.conversations.trim()
        respond_json(exchange, entry, 200, conversation.shown())


async def input_tokens(exchange: Exchange, session: Session, entry: Entry, path: str, query: str) -> None:
    """Count the tokens of a request and of the conversation that the request continues."""
    if _may(exchange, session, entry) and (body := _body(exchange, entry)) is not None:
        if (wrong := lost(session, body)) is not None:
            refuse(exchange, entry, wrong)
            return
        count = responses.input_tokens({**body, "input": [*earlier(session, body), *input_items(body)]})
        respond_json(exchange, entry, 200, {"object": "response.input_tokens", "input_tokens": count})


async def compact(exchange: Exchange, session: Session, entry: Entry, path: str, query: str) -> None:
    """Compact a conversation: keep the user's messages, and replace all other items by one compaction item."""
    if _may(exchange, session, entry) and (body := _body(exchange, entry)) is not None:
        if (wrong := lost(session, body)) is not None:
            refuse(exchange, entry, wrong)
            return
        session.compactions += 1
        items = [*earlier(session, body), *input_items(body)]
        label = f"compact_{session.compactions}"
        kept = [listed(item, f"msg_{label}_{i}") for i, item in enumerate(items) if item.get("role") == "user"]
        made = {"id": f"cmp_{label}", "type": "compaction", "encrypted_content": f"encrypted_cmp_{label}"}
        count = responses.input_tokens({**body, "input": items})
        usage = {
            "input_tokens": count,
            "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": count + 1,
        }
        value = {"id": f"resp_{label}", "object": "response.compaction", "created_at": CREATED_AT}
        respond_json(exchange, entry, 200, {**value, "output": [*kept, made], "usage": usage})


def lost(session: Session, body: Mapping[str, Any]) -> Violation | None:
    """Return an error if the request continues an unknown response or conversation, or contains the output of an unknown call."""
    previous, conversation = body.get("previous_response_id"), _named(body)
    if previous is not None and conversation is not None:
        message = "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Give one of them."
        return Violation("previous-response", 400, "mutually_exclusive_parameters", message, "previous_response_id")
    if conversation is not None and session.conversations.get(conversation) is None:
        return _no_conversation(conversation)
    if previous is None and conversation is None:
        return None
    if previous is not None and session.responses.get(previous) is None:
        sentence = f"Previous response with id '{previous}' not found."
        return Violation("previous-response", 400, "previous_response_not_found", sentence, "previous_response_id")
    if session.responses.is_cut(body):
        return None  # the beginning of the conversation is no longer kept
    if (call := responses.unknown_call(body, earlier(session, body))) is not None:
        sentence = f"No tool call found for function call output with call_id {call}."
        return Violation("output-without-call", 400, None, sentence, "input")
    return None


def unanswered(body: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]) -> Violation | None:
    """Return an error sentence if the conversation that a request continues has a call without an output."""
    if not earlier or (call := responses.unanswered_call(body, earlier)) is None:
        return None
    return Violation("call-without-output", 400, None, f"No tool output found for function call {call}.", "input")


def earlier(session: Session, body: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return, in order, the items of the conversation that a request continues.

    The request names the conversation or the last response by an id.
    """
    named = _named(body)
    if named is not None:
        conversation = session.conversations.get(named)
        return conversation.items if conversation is not None else ()
    return session.responses.history(body) if body.get("previous_response_id") is not None else ()


def converse(session: Session, entry: Entry, turn: Turn, label: str, body: Mapping[str, Any]) -> None:
    """Add the input of a request, and the output of the reply to it, to the conversation that the request names."""
    named = _named(body)
    conversation = None if named is None else session.conversations.get(named)
    if conversation is None or turn.fault is not None or entry.status != 200:
        return
    last = unstreamed.response(turn, reply(unstreamed.undivided(turn), body, label, True))
    conversation.add([*input_items(body), *last.get("output", ())])
    session.conversations.trim()


def _named(body: Mapping[str, Any]) -> str | None:
    """Return the id of the conversation that the body of a request names."""
    given = body.get("conversation")
    id_ = given.get("id") if isinstance(given, dict) else given
    return id_ if isinstance(id_, str) else None


def _no_conversation(id_: str) -> Violation:
    return Violation("conversation", 404, None, f"Conversation with id '{id_}' not found.")


def _may(exchange: Exchange, session: Session, entry: Entry) -> bool:
    """Return True if the client has the login that the script requires.

    If the client lacks the login, refuse the request and return False.
    """
    off = session.rules_off
    refused = first_violation(Asked("/v1", exchange.request.header, b"", session.tokens), AUTH_RULES, off)
    if refused is not None:
        refuse(exchange, entry, refused)
    return refused is None


def _body(exchange: Exchange, entry: Entry) -> dict[str, Any] | None:
    """Return the JSON object in the body of a request.

    If there is no body, return an empty object. If the body is not a JSON object, refuse the request and return None.
    """
    try:
        body = read(entry.body) if entry.body else {}
    except NotJson as error:
        refuse(exchange, entry, Violation("json", 400, "invalid_json", f"The body is not JSON: {error}. Send one JSON object."))
        return None
    if not isinstance(body, dict):
        refuse(exchange, entry, Violation("json", 400, "invalid_json", "The body is not a JSON object. Send one JSON object."))
        return None
    return body


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
