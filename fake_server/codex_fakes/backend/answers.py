"""The answers that are one JSON body: refusals in the error shape of the OpenAI API, and values."""

from __future__ import annotations

import json

from codex_fakes.backend.exchange import Exchange
from codex_fakes.backend.ledger import Entry
from codex_fakes.backend.rules.table import Violation

JSON_TYPE = ("content-type", "application/json")
#: Tells the OpenAI SDKs that this status from 500 is no outage, so that they do not ask again.
NO_RETRY = ("x-should-retry", "false")


def refuse(exchange: Exchange, entry: Entry, violation: Violation, *headers: tuple[str, str]) -> None:
    """Answer with the error shape of the OpenAI API and note why in the ledger."""
    entry.answer = "rule"
    entry.status = violation.status
    entry.sentence = f"{violation.rule}: {violation.message}"
    exchange.respond(violation.status, [JSON_TYPE, *headers], violation.body())


def respond_json(exchange: Exchange, entry: Entry, status: int, value: object, *headers: tuple[str, str]) -> None:
    """Answer with a JSON body."""
    entry.answer = entry.answer or "route"
    entry.status = status
    exchange.respond(status, [JSON_TYPE, *headers], dump(value))


def dump(value: object) -> bytes:
    """Write compact JSON, non-ASCII kept; a lone surrogate, which a client may send as an escape, has no UTF-8 and stays one."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def miss(exchange: Exchange, entry: Entry, sentence: str, answer: str = "miss") -> None:
    """Answer 501: nothing is there for this request, or it is not what the script expects."""
    sentence = f"{sentence} {entry.missed}" if entry.missed else sentence
    refuse(exchange, entry, Violation(answer, 501, f"replay_{answer}", sentence), NO_RETRY)
    entry.answer, entry.sentence = answer, sentence
