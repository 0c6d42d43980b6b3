"""Send answers with a JSON body: values, and refusals in the error format of the OpenAI API."""

from __future__ import annotations

from collections.abc import Sequence

from codex_fakes.backend.exchange import Exchange
from codex_fakes.backend.ledger import Entry
from codex_fakes.backend.rules.table import Violation
from codex_replay.core.wire.json_text import ascii_dumps, compact

JSON_TYPE = ("content-type", "application/json")
#: Tells the OpenAI SDKs that this status from 500 is no outage, so that they do not ask again.
NO_RETRY = ("x-should-retry", "false")


def refuse(exchange: Exchange, entry: Entry, violation: Violation, *headers: tuple[str, str]) -> None:
    """Refuse a request in the error format of the OpenAI API, and note the reason in the ledger."""
    entry.answer = "rule"
    entry.status = violation.status
    entry.sentence = f"{violation.rule}: {violation.message}"
    exchange.respond(violation.status, [JSON_TYPE, *headers, *request_id(exchange, f"n{entry.n}")], violation.body())


def respond_json(exchange: Exchange, entry: Entry, status: int, value: object, *headers: tuple[str, str]) -> None:
    """Answer with a JSON body."""
    entry.answer = entry.answer or "route"
    entry.status = status
    known = () if any(name == "x-request-id" for name, _ in headers) else request_id(exchange, f"n{entry.n}")
    exchange.respond(status, [JSON_TYPE, *headers, *known], dump(value))


def request_id(exchange: Exchange, label: str) -> tuple[tuple[str, str], ...]:
    """Return the header `x-request-id` of an answer, which the SDKs of OpenAI show.

    Codex does not read the header, and recordings of Codex do not contain it.
    """
    return (("x-request-id", f"req_{label}"),) if exchange.request.header("originator") is None else ()


def merged(ours: Sequence[tuple[str, str]], given: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the headers of an answer: those of the backend that the script does not set, followed by the script's headers."""
    if not given:
        return list(ours)
    names = {name.lower() for name, _ in given}
    return [*(pair for pair in ours if pair[0] not in names), *given]


def dump(value: object) -> bytes:
    """Return a value as compact JSON with unescaped non-ASCII characters.

    A lone surrogate (a client may send one as an escape) stays an escape, because it has no UTF-8 form.
    """
    try:
        return compact(value).encode()
    except UnicodeEncodeError:
        return ascii_dumps(value)


def miss(exchange: Exchange, entry: Entry, sentence: str, answer: str = "miss") -> None:
    """Answer a request with 501, because the script has no answer for it or does not expect it."""
    sentence = f"{sentence} {entry.missed}" if entry.missed else sentence
    refuse(exchange, entry, Violation(answer, 501, f"replay_{answer}", sentence), NO_RETRY)
    entry.answer, entry.sentence = answer, sentence
