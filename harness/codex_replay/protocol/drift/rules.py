"""The rules of drift: for each kind of change and each sender, whether it breaks whoever relies on the old protocol.

The idea in two sentences. What the *client* sends must still be accepted: whatever narrows there breaks who sends it. What
the *server* sends was a promise: whatever it takes away or loosens breaks who reads it; what it merely adds does not, since a
reader of an open protocol ignores what it does not know.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from codex_replay.protocol.drift.experimental import SAID

Sender = Literal["client", "server"]
Class = Literal["breaking", "additive"]


class Rule(NamedTuple):
    """One row: the change `id` in what `sender` sends is of class `cls`; `sentence` says what it means to the client."""

    id: str
    sender: Sender
    cls: Class
    sentence: str


B: Class = "breaking"
A: Class = "additive"

_ROWS: tuple[tuple[str, Sender, Class, str], ...] = (
    # id, who sends what changed, class, what it means to the client
    ("method-gone", "client", B, "The server no longer knows it and answers an error."),
    ("method-gone", "server", B, "It is never sent again: who waits for it waits in vain."),
    ("method-new", "client", A, "It can be sent now."),
    ("method-new", "server", A, "It may arrive now; if it is a request, it wants an answer."),
    ("property-gone", "client", B, "The server no longer reads it: what is sent there is lost."),
    ("property-gone", "server", B, "It is no longer sent: who reads it finds nothing."),
    ("property-new", "client", A, "It may be sent now."),
    ("property-new", "server", A, "It is sent now."),
    ("property-new-required", "client", B, "It must be sent now: without it a message is refused."),
    ("property-new-required", "server", A, "It is always sent now."),
    ("property-required", "client", B, "It was optional and must be sent now."),
    ("property-required", "server", A, "It was optional and is always sent now."),
    ("property-optional", "client", A, "It had to be sent and may be left out now."),
    ("property-optional", "server", B, "It was always sent and may be missing now."),
    ("value-gone", "client", B, "The server no longer accepts this value."),
    ("value-gone", "server", B, "This value is never sent again."),
    ("value-new", "client", A, "The server accepts one more value."),
    ("value-new", "server", A, "One more value may arrive."),
    ("variant-gone", "client", B, "The server no longer accepts this variant."),
    ("variant-gone", "server", B, "This variant is never sent again."),
    ("variant-new", "client", A, "The server accepts one more variant."),
    ("variant-new", "server", A, "One more variant may arrive."),
    ("enum-closed", "client", B, "Any value was accepted; now only those of a list are."),
    ("enum-closed", "server", A, "Only values of a list are sent now."),
    ("enum-opened", "client", A, "Any value is accepted now, not only those of a list."),
    ("enum-opened", "server", B, "Only values of a list were sent; now any may arrive."),
    ("type-changed", "client", B, "The old type is refused."),
    ("type-changed", "server", B, "Another type arrives than the one that was promised."),
    ("type-narrowed", "client", B, "Fewer types are accepted."),
    ("type-narrowed", "server", A, "Fewer types are sent."),
    ("type-widened", "client", A, "More types are accepted."),
    ("type-widened", "server", B, "Types may arrive that were never sent before."),
    ("null-gone", "client", B, "null is no longer accepted."),
    ("null-gone", "server", A, "It is never null now."),
    ("null-new", "client", A, "null is accepted now."),
    ("null-new", "server", B, "It was never null and may be now."),
    ("limits-narrowed", "client", B, "Fewer values are in bounds."),
    ("limits-narrowed", "server", A, "It stays in narrower bounds."),
    ("limits-widened", "client", A, "More values are in bounds."),
    ("limits-widened", "server", B, "It may exceed the bounds it kept."),
    ("keys-closed", "client", B, "Keys that are not listed are refused now."),
    ("keys-closed", "server", A, "Only the listed keys are sent."),
    ("keys-opened", "client", A, "Keys that are not listed are let pass now."),
    ("keys-opened", "server", A, "Keys that are not listed may be sent."),
    ("map-gone", "client", B, "It was a map with free keys and is none now."),
    ("map-gone", "server", B, "It was a map with free keys and is none now."),
    ("map-new", "client", A, "It takes free keys now."),
    ("map-new", "server", A, "It may carry free keys now."),
    ("default-changed", "client", A, "Left out, it means something else now."),
    ("default-changed", "server", A, "Left out, it means something else now."),
    ("keyword-changed", "client", B, "A schema keyword that is not understood here differs."),
    ("keyword-changed", "server", B, "A schema keyword that is not understood here differs."),
)  # fmt: skip

#: (id, sender) -> the rule.
RULES: dict[tuple[str, Sender], Rule] = {(row[0], row[1]): Rule(*row) for row in _ROWS}
#: The ids, in the order of the table.
IDS: tuple[str, ...] = tuple(dict.fromkeys(row[0] for row in _ROWS))
#: The rules of what is gone, which may be there all the same for clients that say a capability; and what it means then.
GONE = frozenset({"method-gone", "property-gone", "value-gone", "variant-gone"})
BEHIND: dict[Sender, str] = {
    "client": f"Only a client that says {SAID} in initialize may send it; any other is refused.",
    "server": f"Only a client that says {SAID} in initialize is promised it.",
}
