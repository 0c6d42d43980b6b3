"""Sentences for failures: what was expected, what came, and where, for an author who reads nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codex_replay.plugin.proxy.fixture import Exchange

#: How much of a value a sentence shows.
SHOWN = 600


def must_be(where: str, got: Any, wanted: Any) -> None:
    """Hold a value to the one that it must be; AssertionError says where, what was expected and what came."""
    __tracebackhide__ = True
    if got != wanted or (isinstance(wanted, bool) and not isinstance(got, bool)):  # 0 is no false
        raise AssertionError(f"{where} must be {short(wanted)}, but it is {short(got)}.")


def must_be_same(where: str, got: Any, wanted: Any) -> None:
    """As `must_be`, the order of keys included."""
    __tracebackhide__ = True
    must_be(where, got, wanted)
    if json.dumps(got) != json.dumps(wanted):
        raise AssertionError(f"{where} must have its keys in this order: {short(wanted)}, but it is {short(got)}.")


def must_be_one_of(where: str, got: Any, wanted: tuple[Any, ...]) -> None:
    """As `must_be`, when there are several that it may be."""
    __tracebackhide__ = True
    if got not in wanted:
        raise AssertionError(f"{where} must be {' or '.join(map(short, wanted))}, but it is {short(got)}.")


def only(where: str, found: list[Any], of: Any = None) -> Any:
    """Return the one that there must be; `of` is what they were looked for in."""
    __tracebackhide__ = True
    if len(found) != 1:
        among = "" if of is None else f" among {short(of)}"
        raise AssertionError(
            f"There must be one {where}, but there are {len(found)}{among}{': ' + short(found) if found else ''}."
        )
    return found[0]


def must_be_answered(done: Exchange, status: int, when: str = "") -> None:
    """Hold the status of an answer; AssertionError names the request, both statuses, the error's code and the body."""
    __tracebackhide__ = True
    if done.status != status:
        request = f"{done.method} {done.path}{' ' + when if when else ''}"
        raise AssertionError(f"{request} must be answered {status}, but was answered {done.answered}: {done.body[:300]!r}")


def short(value: Any) -> str:
    """A value as Python writes it, cut when it is long."""
    said = repr(value)
    return said if len(said) <= SHOWN else f"{said[:SHOWN]}... ({len(said)} characters)"


def must_be_unset(where: str, params: dict[str, Any], *names: str) -> None:
    """Hold fields to be null or omitted: "Values are omitted when undefined", and the examples show nulls."""
    __tracebackhide__ = True
    for name in names:
        if params.get(name) is not None:
            raise AssertionError(f"{where}.{name} must be null or omitted, but it is {short(params[name])}.")


def must_have(where: str, text: str, *words: str) -> None:
    """Hold a text to have these words, in this order."""
    __tracebackhide__ = True
    at = -1
    for number, word in enumerate(words):
        if word not in text:
            raise AssertionError(f"{where} must have {short(word)}, but it is {short(text)}.")
        if text.index(word) < at:
            raise AssertionError(f"{where} must have {short(words[number - 1])} before {short(word)}, but it is {short(text)}.")
        at = text.index(word)


def must_lack(where: str, text: str, word: str) -> None:
    """Hold a text not to have this word."""
    __tracebackhide__ = True
    if word in text:
        raise AssertionError(f"{where} must not have {short(word)}, but it is {short(text)}.")
