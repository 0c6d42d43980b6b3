"""Checks whose failure messages have the place, the expected value and the actual value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codex_replay.plugin.proxy.fixture import Exchange

#: The maximum length of a value in a message.
SHOWN = 600


def with_env(env: Mapping[str, str]) -> str:
    """Return the beginning of a sentence that names the environment variables of a case; empty if the case has none."""
    return f"With {', '.join(f'{name}={value}' for name, value in env.items())}, " if env else ""


def must_be(where: str, got: Any, wanted: Any) -> None:
    """Check a value; the AssertionError has its place, the expected value and the actual value."""
    __tracebackhide__ = True
    if got != wanted or (isinstance(wanted, bool) and not isinstance(got, bool)):  # 0 is not False
        raise AssertionError(f"{where} must be {short(wanted)}, but it is {short(got)}.")


def must_count(where: str, got: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Check token counts; the AssertionError names the mistake if each count is too large."""
    __tracebackhide__ = True
    more = all(isinstance(a, int) and a >= b for a, b in zip(got, wanted, strict=True))
    hint = " The answer counts more tokens than the model: leave out those of earlier requests, and count each once."
    if got != wanted:
        raise AssertionError(f"{where} must be {short(wanted)}, but it is {short(got)}.{hint if more else ''}")


def must_be_same(where: str, got: Any, wanted: Any) -> None:
    """Check that a value equals the expected one, including the order of keys."""
    __tracebackhide__ = True
    must_be(where, got, wanted)
    if json.dumps(got) != json.dumps(wanted):
        raise AssertionError(f"{where} must have its keys in this order: {short(wanted)}, but it is {short(got)}.")


def must_be_one_of(where: str, got: Any, wanted: tuple[Any, ...]) -> None:
    """Check a value like `must_be`, but with several allowed values."""
    __tracebackhide__ = True
    if got not in wanted:
        raise AssertionError(f"{where} must be {' or '.join(map(short, wanted))}, but it is {short(got)}.")


def only(where: str, found: list[Any], of: Any = None) -> Any:
    """Return the only element of `found`; the failure message shows `of`, the value that was searched."""
    __tracebackhide__ = True
    if len(found) != 1:
        among = "" if of is None else f" among {short(of)}"
        raise AssertionError(
            f"There must be one {where}, but there are {len(found)}{among}{': ' + short(found) if found else ''}."
        )
    return found[0]


def usage_of(done: Exchange) -> Any:
    """Return the `usage` of an answer without a stream; raises AssertionError if the answer has no `usage`."""
    __tracebackhide__ = True
    usage = done.json.get("usage")
    if not isinstance(usage, dict):
        raise AssertionError(
            f"`usage` of the answer to {done.method} {done.path} must be an object with the model's count, but it is "
            f"{short(usage)}. Read the count from tokenUsage.total of thread/tokenUsage/updated, or from info.total_token_usage "
            "of codex/event/token_count."
        )
    return usage


def must_be_answered(done: Exchange, status: int, when: str = "") -> None:
    """Check the status of an answer; the AssertionError has the request, both statuses, the error code and the body."""
    __tracebackhide__ = True
    if done.status != status:
        request = f"{done.method} {done.path}{' ' + when if when else ''}"
        raise AssertionError(f"{request} must be answered {status}, but was answered {done.answered}: {done.shown()}")


def short(value: Any) -> str:
    """Return the repr of a value, truncated if it is long."""
    message = repr(value)
    return message if len(message) <= SHOWN else f"{message[:SHOWN]}... ({len(message)} characters)"


def must_be_unset(where: str, params: dict[str, Any], *names: str) -> None:
    """Check that fields are null or omitted: "Values are omitted when undefined", and the examples show nulls."""
    __tracebackhide__ = True
    for name in names:
        if params.get(name) is not None:
            raise AssertionError(f"{where}.{name} must be null or omitted, but it is {short(params[name])}.")


def must_have(where: str, text: str, *words: str) -> None:
    """Check that a text contains the given words in order."""
    __tracebackhide__ = True
    at = -1
    for number, word in enumerate(words):
        if word not in text:
            raise AssertionError(f"{where} must contain {short(word)}, but it is {short(text)}.")
        if text.index(word) < at:
            raise AssertionError(f"{where} must have {short(words[number - 1])} before {short(word)}, but it is {short(text)}.")
        at = text.index(word)


def must_lack(where: str, text: str, word: str) -> None:
    """Check that a text does not contain a word."""
    __tracebackhide__ = True
    if word in text:
        raise AssertionError(f"{where} must not contain {short(word)}, but it is {short(text)}.")
