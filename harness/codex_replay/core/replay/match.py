"""Compare a live client frame with the recorded frame, and bind live values to recorded values.

A match has one of two levels, as in vcrpy's match_on. The match level `method` requires the same kind of message and the
same method. The match level `exact` also requires the same content, after values that change from run to run are masked.
Two uuids are paired at their first occurrence, and must stay paired. Replies to server requests are always compared by
content (DESIGN.md, "Matching, replaying, normalising").

The masking rules (module `masking`) are loaded only when two values differ, because fake-codex loads this module at start-up.
"""

from __future__ import annotations

from codex_replay.core.wire.json_text import dumps, loads, member_span
from codex_replay.core.wire.jsonrpc import kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Protocol

    class Rules(Protocol):
        """The interface of `masking.Rules`: which keys and which parts of strings change from run to run."""

        def mask(self, key: str, value: Any) -> Any:
            """Return a leaf value with all parts masked that change from run to run, except uuids."""

        def uuids(self, text: str) -> list[str]:
            """Return the uuids in the text, in order."""


LEVELS = ("method", "exact")
SHOWN = 120  # characters of a value
LITERAL = "redacted-"  # and a number: the placeholder of a secret that the user named
_UUID = 36  # characters of a uuid


class Difference:
    """One difference between a live frame and the recorded frame; `path` is its JSON path, `<absent>` marks a missing side."""

    __slots__ = ("live", "path", "recorded")

    def __init__(self, path: str, recorded: str, live: str) -> None:
        self.path = path
        self.recorded = recorded
        self.live = live

    def __str__(self) -> str:
        from codex_replay.core.text.truncate import truncate  # not on fake-codex's start-up path

        return f"{self.path}: recorded {truncate(self.recorded, SHOWN)}, got {truncate(self.live, SHOWN)}"


def first_few(differences: Sequence[object]) -> str:
    """Return the first three differences, and the number of the others: the misspelt key is often not the first."""
    more = f"; and {len(differences) - 3} more" if len(differences) > 3 else ""
    return "; ".join(map(str, differences[:3])) + more


class Bindings:
    """Bindings of recorded values (uuids and paths) to live values.

    A recorded value is bound at its first occurrence, and stays bound.
    """

    def __init__(self) -> None:
        self._live: dict[str, str] = {}
        self._recorded: dict[str, str] = {}
        self._ids: dict[bytes, bytes] = {}
        self._paths: dict[bytes, bytes] = {}
        self._differs = False

    def __bool__(self) -> bool:
        """Return True if a live value differs from its recorded value."""
        return self._differs

    def give(self, value: str) -> None:
        """Bind a recorded id to itself: the client got the recorded id unchanged, and must send it back unchanged."""
        self.pair(value, value)

    def agrees(self, recorded: str, live: str) -> bool | None:
        """Return True if two ids are bound to each other, False if one of them is bound to a third id, and None if neither is
        bound.
        """
        if recorded in self._live or live in self._recorded:
            return self._live.get(recorded) == live and self._recorded.get(live) == recorded
        return None

    def pair(self, recorded: str, live: str) -> bool:
        """Bind a recorded id to a live id at the first occurrence of both.

        Return False if one of the two ids is already bound to another id.
        """
        agrees = self.agrees(recorded, live)
        if agrees is not None:
            return agrees
        self._live[recorded] = live
        self._recorded[live] = recorded
        if recorded != live:
            self._differs = True
            self._ids[_in_json(recorded)] = _in_json(live)
        return True

    def pair_path(self, recorded: str, live: str) -> None:
        """Bind a recorded directory to a live directory at the first occurrence of the recorded one.

        Two recorded directories may be bound to the same live directory.
        """
        old, new = _in_json(recorded.rstrip("/")), _in_json(live.rstrip("/") or "/")
        if old and old not in self._paths:  # a recorded root is a part of every path
            self._paths[old] = new
            self._differs |= old != new

    def apply(self, raw: bytes) -> bytes:
        """Return the recorded bytes with every bound value inserted; all other bytes stay unchanged."""
        if not self._differs:
            return raw
        from codex_replay.core.text.substitute import substitute  # not before the first answer of fake-codex

        return substitute(raw, lambda old: self._paths.get(old) or self._ids[old], self._paths, self._ids)


def _in_json(value: str) -> bytes:
    return dumps(value)[1:-1]


def splice_id(raw: bytes, recorded: Any, live: Any) -> bytes:
    """Return the bytes of a response with the live request id in place of the recorded id."""
    if type(recorded) is type(live) and recorded == live:
        return raw
    span = member_span(raw, "id")
    return raw if span is None else raw[: span[0]] + dumps(live) + raw[span[1] :]


class Matcher:
    """Compare live client frames with the client frames of one recording.

    The function `rules` supplies the masking rules; it is called once, when two values first differ.

    When values are bound, only texts that may contain a uuid are searched for ids. With `every`, all texts are searched.

    The live frame and the recording were redacted by different redactors, so the same secret may have different placeholder
    numbers. Two placeholders that differ only in their number are paired at their first occurrence, as uuids are, and must stay
    paired. Placeholders are never inserted into a recorded frame.
    """

    def __init__(self, rules: Callable[[], Rules], every: bool = False) -> None:
        self.bindings = Bindings()
        self._secrets = Bindings()
        self.redacted = False  # set once live frames are redacted: then placeholders that are equal are bound, too
        self._load = rules
        self._every = every
        self._rules: Rules | None = None

    def differences(self, recorded: Any, live: Any) -> list[Difference]:
        """Return the places where two messages differ after masking.

        Request ids are not compared. `differences` binds no values.
        """
        found: list[Difference] = []
        self._walk("", "", _without_id(recorded), _without_id(live), found, {})
        return found

    def bind(self, recorded: Any, live: Any) -> None:
        """Bind the uuids and paths at the same places of two matched messages to each other."""
        pairs: dict[str, str] = {}
        self._walk("", "", _without_id(recorded), _without_id(live), None, pairs)
        for ours, theirs in pairs.items():
            if ours[:1] == "/":
                self.bindings.pair_path(ours, theirs)
            else:
                self._bindings_of(ours).pair(ours, theirs)

    def _walk(self, path: str, key: str, a: Any, b: Any, found: list[Difference] | None, pairs: dict[str, str]) -> None:
        """Collect in `found` the places where two values differ, and in `pairs` the parts that correspond to each other.

        If `found` or `pairs` is None, it is not filled.
        """
        if _identical(a, b):
            if self.redacted and found is None:
                for secret in _all_secrets(b):
                    pairs.setdefault(secret, secret)
            return
        if type(a) is dict and type(b) is dict:
            live = {name: name if name in b else self._applied(name) for name in a}
            for name, other in [*live.items(), *((name, name) for name in b if name not in live.values())]:
                inner = f"{path}.{name}" if path else str(name)
                if name in a and other in b:
                    self._walk(inner, name, a[name], b[other], found, pairs)
                elif found is not None:
                    found.append(Difference(inner, *(_text(side[name]) if name in side else "<absent>" for side in (a, b))))
        elif type(a) is list and type(b) is list and len(a) == len(b):
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                self._walk(f"{path}[{i}]", key, x, y, found, pairs)
        elif found is None:
            if self._every or _may_bind(a, b):  # else the rules need not be loaded
                self._same_leaf(key, a, b, pairs)
        elif not self._same_leaf(key, a, b, pairs):
            found.append(Difference(path or "the message", _text(a), _text(b)))

    def _same_leaf(self, key: str, a: Any, b: Any, pairs: dict[str, str]) -> bool:
        if self._rules is None:
            self._rules = self._load()
        rules = self._rules
        if type(a) is str and type(b) is str:
            recorded = a
            for ours, theirs in ((rules.uuids(a), rules.uuids(b)), _secrets(a, b)):
                if not ours or len(ours) != len(theirs):
                    continue
                if not all(self._pairs_up(x, y, pairs) for x, y in zip(ours, theirs, strict=True)):
                    return False
                from codex_replay.core.text.substitute import substitute

                a = substitute(a, dict(zip(ours, theirs, strict=True)).__getitem__, (), ours)
                if a == b:
                    return True
            named = _literals(a, b)
            if named and all(self._pairs_up(x, y, pairs) for x, y in named):
                return True
            if rules.mask(key, a) != rules.mask(key, b) and rules.mask(key, self._applied(a)) != rules.mask(key, b):
                return False
            if a.startswith("/") and b.startswith("/"):
                pairs.setdefault(recorded, b)  # as it was recorded: paths and ids are spliced in at once
            return True
        numbers = type(a) in (int, float) and type(b) in (int, float)
        return numbers and bool(rules.mask(key, a) == rules.mask(key, b))

    def _applied(self, text: str) -> str:
        """Return a recorded text with each bound value replaced by its live value."""
        return str(loads(self.bindings.apply(dumps(text)))) if self.bindings else text

    def _pairs_up(self, recorded: str, live: str, pairs: dict[str, str]) -> bool:
        agrees = self._bindings_of(recorded).agrees(recorded, live)
        return pairs.setdefault(recorded, live) == live if agrees is None else agrees

    def _bindings_of(self, recorded: str) -> Bindings:
        return self._secrets if _may_hold_secret(recorded) else self.bindings


def _identical(a: Any, b: Any) -> bool:
    """Return True if two JSON values are the same; `==` is not used, because Python treats false as 0 and true as 1."""
    if a != b or type(a) is not type(b):
        return False
    try:
        return type(a) not in (dict, list) or dumps(a) == dumps(b)
    except ValueError:  # half a surrogate pair: the values are compared part by part
        return False


def _may_hold_secret(text: str) -> bool:
    """Return True if a redacted text may contain a placeholder; a placeholder in the form of a uuid counts as a uuid."""
    return "redacted" in text or "eyJ" in text


def _secrets(recorded: str, live: str) -> tuple[list[str], list[str]]:
    """Return the placeholders of two texts.

    Return empty lists if the placeholders of the two texts differ in more than their numbers.
    """
    if not _may_hold_secret(recorded) or not _may_hold_secret(live):
        return [], []
    from codex_replay.core.redact.placeholders import placeholders_in  # not on fake-codex's start-up path

    ours, theirs = placeholders_in(recorded), placeholders_in(live)
    if [series for _, series in ours] != [series for _, series in theirs]:
        return [], []
    return [text for text, _ in ours], [text for text, _ in theirs]


def _literals(recorded: str, live: str) -> list[tuple[str, str]]:
    """Return the live texts at the places where the recording has a secret that the user named (`--literal`, `--env-secrets`).

    The redactor does not find a secret of this kind in the live text. If the live text around the secrets differs from the
    recorded text, return an empty list.
    """
    if LITERAL not in recorded:
        return []
    from codex_replay.core.redact.placeholders import placeholders_in  # not on fake-codex's start-up path

    names = [text for text, series in placeholders_in(recorded) if series == LITERAL.encode()]
    between, rest = [], recorded
    for name in names:
        before, _, rest = rest.partition(name)
        between.append(before)
    if not names or not live.startswith(between[0]) or not live.endswith(rest):
        return []
    found, at, last = [], len(between[0]), len(live) - len(rest)
    for name, after in zip(names, [*between[1:], None], strict=True):
        end = last if after is None else live.find(after, at + 1, last) if after else -1
        if end <= at:
            return []
        found.append((name, live[at:end]))
        at = end + len(after or "")
    return found


def _all_secrets(value: Any) -> Iterator[str]:
    """Yield the placeholders in all texts of a value."""
    if type(value) is str:
        yield from _secrets(value, value)[0]
    elif type(value) in (dict, list):
        for inner in value.values() if type(value) is dict else value:
            yield from _all_secrets(inner)


def _may_bind(a: Any, b: Any) -> bool:
    """Return True if two leaf values may contain uuids or placeholders, or may be paths. The rules then decide."""
    if type(a) is not str or type(b) is not str:
        return False
    if _may_hold_secret(a) and (LITERAL in a or _may_hold_secret(b)):
        return True
    return (a[:1] == "/" and b[:1] == "/") or (len(a) >= _UUID and len(b) >= _UUID and "-" in a and "-" in b)


def _without_id(message: Any) -> Any:
    if type(message) is dict and "id" in message and kind(message) != "other":
        return {key: value for key, value in message.items() if key not in ("id", "jsonrpc")}
    return message


def _text(value: Any) -> str:
    try:
        return dumps(value).decode()
    except ValueError:
        return repr(value)
