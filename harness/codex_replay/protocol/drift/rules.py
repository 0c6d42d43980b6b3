"""The rules of drift: each rule decides whether one kind of change breaks the programs that use the old protocol.

Messages of the *client*: the server must still accept them, so a type that allows fewer values breaks the clients that send them.
Messages of the *server*: clients rely on them, so a type that loses a member, or allows more values, breaks the clients that read
them. A new member breaks no client, because clients of an open protocol ignore unknown members.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from codex_replay.protocol.drift.experimental import SAID

Sender = Literal["client", "server"]
Class = Literal["breaking", "additive"]


class Rule(NamedTuple):
    """One rule: a change with the rule's `id` in messages of `sender` belongs to the class `cls` (breaking or additive).

    `sentence` describes the effect of the change on the client.
    """

    id: str
    sender: Sender
    cls: Class
    sentence: str


B: Class = "breaking"
A: Class = "additive"

_ROWS: tuple[tuple[str, Sender, Class, str], ...] = (
    # id, sender of the changed part, class, effect on the client
    ("method-gone", "client", B, "The server no longer knows the method and answers with an error."),
    ("method-gone", "server", B, "The method is no longer sent: a client that waits for it hangs."),
    ("method-new", "client", A, "The method can be sent now."),
    ("method-new", "server", A, "The method may arrive now; the client must answer a request."),
    ("property-gone", "client", B, "The server ignores the property now."),
    ("property-gone", "server", B, "The property is no longer sent: a client that reads it finds no value."),
    ("property-new", "client", A, "The property may be sent now."),
    ("property-new", "server", A, "The property is sent now."),
    ("property-new-required", "client", B, "The property must be sent now: a message without it is refused."),
    ("property-new-required", "server", A, "The property is always sent now."),
    ("property-required", "client", B, "The property was optional and is required now."),
    ("property-required", "server", A, "The property was optional and is always sent now."),
    ("property-optional", "client", A, "The property was required and is optional now."),
    ("property-optional", "server", B, "The property was always sent and may be missing now."),
    ("value-gone", "client", B, "The server no longer accepts this value."),
    ("value-gone", "server", B, "The server no longer sends this value."),
    ("value-new", "client", A, "The server accepts one more value."),
    ("value-new", "server", A, "The server may send one more value."),
    ("variant-gone", "client", B, "The server no longer accepts this variant."),
    ("variant-gone", "server", B, "The server no longer sends this variant."),
    ("variant-new", "client", A, "The server accepts one more variant."),
    ("variant-new", "server", A, "The server may send one more variant."),
    ("enum-closed", "client", B, "Any value was accepted; now only listed values are accepted."),
    ("enum-closed", "server", A, "Only listed values are sent now."),
    ("enum-opened", "client", A, "Any value is accepted now, not only listed ones."),
    ("enum-opened", "server", B, "Only listed values were sent; now any value may arrive."),
    ("type-changed", "client", B, "The server refuses the old type."),
    ("type-changed", "server", B, "The server sends another type than before."),
    ("type-narrowed", "client", B, "The server accepts fewer types."),
    ("type-narrowed", "server", A, "The server sends fewer types."),
    ("type-widened", "client", A, "The server accepts more types."),
    ("type-widened", "server", B, "The server may send types that it never sent before."),
    ("null-gone", "client", B, "null is no longer accepted."),
    ("null-gone", "server", A, "The value is never null now."),
    ("null-new", "client", A, "null is accepted now."),
    ("null-new", "server", B, "The value was never null and may be null now."),
    ("limits-narrowed", "client", B, "The server accepts a narrower range."),
    ("limits-narrowed", "server", A, "The server sends a narrower range."),
    ("limits-widened", "client", A, "The server accepts a wider range."),
    ("limits-widened", "server", B, "The server sends a wider range: a value may exceed the old bounds."),
    ("keys-closed", "client", B, "The server now refuses unlisted keys."),
    ("keys-closed", "server", A, "The server sends only the listed keys."),
    ("keys-opened", "client", A, "The server now accepts unlisted keys."),
    ("keys-opened", "server", A, "The server may send unlisted keys."),
    ("map-gone", "client", B, "The value was a map with arbitrary keys; now its keys are fixed."),
    ("map-gone", "server", B, "The value was a map with arbitrary keys; now its keys are fixed."),
    ("map-new", "client", A, "The value may have arbitrary keys now."),
    ("map-new", "server", A, "The server may send arbitrary keys now."),
    ("default-changed", "client", A, "The default value has changed."),
    ("default-changed", "server", A, "The default value has changed."),
    ("keyword-changed", "client", B, "A schema keyword has changed that codex-replay does not interpret."),
    ("keyword-changed", "server", B, "A schema keyword has changed that codex-replay does not interpret."),
)  # fmt: skip

#: (id, sender) -> the rule.
RULES: dict[tuple[str, Sender], Rule] = {(row[0], row[1]): Rule(*row) for row in _ROWS}
#: The ids, in the order of the table.
IDS: tuple[str, ...] = tuple(dict.fromkeys(row[0] for row in _ROWS))
#: The rules of removed parts that clients with a capability may still use, and the sentence for that.
GONE = frozenset({"method-gone", "property-gone", "value-gone", "variant-gone"})
BEHIND: dict[Sender, str] = {
    "client": f"Only a client that sends {SAID} in initialize may send this part; the server refuses it from other clients.",
    "server": f"Only a client that sends {SAID} in initialize receives this part.",
}
