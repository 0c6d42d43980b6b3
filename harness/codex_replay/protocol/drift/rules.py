"""The rules of drift: decide, for each kind of change and each sender, whether it breaks programs that use the old protocol.

The idea in two sentences. The server must still accept the messages of the *client*: a narrower type breaks their senders. What
the *server* sends was a promise: a type that loses or loosens something breaks its readers; a mere addition does not, since a
reader of an open protocol ignores what it does not know.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from codex_replay.protocol.drift.experimental import SAID

Sender = Literal["client", "server"]
Class = Literal["breaking", "additive"]


class Rule(NamedTuple):
    """One row: the change `id` in messages of `sender` has the class `cls`; `sentence` is its effect on the client."""

    id: str
    sender: Sender
    cls: Class
    sentence: str


B: Class = "breaking"
A: Class = "additive"

_ROWS: tuple[tuple[str, Sender, Class, str], ...] = (
    # id, sender of the changed part, class, effect on the client
    ("method-gone", "client", B, "The server no longer knows it and answers an error."),
    ("method-gone", "server", B, "It is no longer sent: a client that waits for it hangs."),
    ("method-new", "client", A, "It can be sent now."),
    ("method-new", "server", A, "It may arrive now; if it is a request, the client must answer it."),
    ("property-gone", "client", B, "The server no longer reads it; a value sent in it is ignored."),
    ("property-gone", "server", B, "It is no longer sent: a client that reads it finds nothing."),
    ("property-new", "client", A, "It may be sent now."),
    ("property-new", "server", A, "It is sent now."),
    ("property-new-required", "client", B, "It must be sent now: a message without it is refused."),
    ("property-new-required", "server", A, "It is always sent now."),
    ("property-required", "client", B, "It was optional and must be sent now."),
    ("property-required", "server", A, "It was optional and is always sent now."),
    ("property-optional", "client", A, "It had to be sent and may be left out now."),
    ("property-optional", "server", B, "It was always sent and may be missing now."),
    ("value-gone", "client", B, "The server no longer accepts this value."),
    ("value-gone", "server", B, "This value is no longer sent."),
    ("value-new", "client", A, "The server accepts one more value."),
    ("value-new", "server", A, "One more value may arrive."),
    ("variant-gone", "client", B, "The server no longer accepts this variant."),
    ("variant-gone", "server", B, "This variant is no longer sent."),
    ("variant-new", "client", A, "The server accepts one more variant."),
    ("variant-new", "server", A, "One more variant may arrive."),
    ("enum-closed", "client", B, "Any value was accepted; now only listed values are."),
    ("enum-closed", "server", A, "Only listed values are sent now."),
    ("enum-opened", "client", A, "Any value is accepted now, not only listed ones."),
    ("enum-opened", "server", B, "Only listed values were sent; now any value may arrive."),
    ("type-changed", "client", B, "The old type is refused."),
    ("type-changed", "server", B, "Another type is sent than the schema promised."),
    ("type-narrowed", "client", B, "Fewer types are accepted."),
    ("type-narrowed", "server", A, "Fewer types are sent."),
    ("type-widened", "client", A, "More types are accepted."),
    ("type-widened", "server", B, "Types may arrive that were never sent before."),
    ("null-gone", "client", B, "null is no longer accepted."),
    ("null-gone", "server", A, "It is never null now."),
    ("null-new", "client", A, "null is accepted now."),
    ("null-new", "server", B, "It was never null and may be now."),
    ("limits-narrowed", "client", B, "The accepted range is narrower."),
    ("limits-narrowed", "server", A, "The range that is sent is narrower."),
    ("limits-widened", "client", A, "The accepted range is wider."),
    ("limits-widened", "server", B, "The range that is sent is wider: a value may exceed the old bounds."),
    ("keys-closed", "client", B, "Unlisted keys are refused now."),
    ("keys-closed", "server", A, "Only the listed keys are sent."),
    ("keys-opened", "client", A, "Unlisted keys are accepted now."),
    ("keys-opened", "server", A, "Unlisted keys may be sent."),
    ("map-gone", "client", B, "It was a map with free keys and is no longer one."),
    ("map-gone", "server", B, "It was a map with free keys and is no longer one."),
    ("map-new", "client", A, "It accepts free keys now."),
    ("map-new", "server", A, "It may carry free keys now."),
    ("default-changed", "client", A, "Its default has changed."),
    ("default-changed", "server", A, "Its default has changed."),
    ("keyword-changed", "client", B, "A schema keyword that codex-replay does not understand differs."),
    ("keyword-changed", "server", B, "A schema keyword that codex-replay does not understand differs."),
)  # fmt: skip

#: (id, sender) -> the rule.
RULES: dict[tuple[str, Sender], Rule] = {(row[0], row[1]): Rule(*row) for row in _ROWS}
#: The ids, in the order of the table.
IDS: tuple[str, ...] = tuple(dict.fromkeys(row[0] for row in _ROWS))
#: The rules of removed parts that clients with a capability may still use, and the sentence for that.
GONE = frozenset({"method-gone", "property-gone", "value-gone", "variant-gone"})
BEHIND: dict[Sender, str] = {
    "client": f"Only a client that sends {SAID} in initialize may send it; the server refuses it from other clients.",
    "server": f"Only a client that sends {SAID} in initialize receives it.",
}
