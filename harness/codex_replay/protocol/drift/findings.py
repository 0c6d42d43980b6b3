"""The result of a comparison of two bundles: findings, their places, and the clients that notice them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from codex_replay.protocol.drift.experimental import CAPABILITY
from codex_replay.protocol.drift.rules import BEHIND, GONE, IDS, Rule
from codex_replay.protocol.drift.shapes.change import Change, Path, show
from codex_replay.protocol.schema.bundle import DIRECTIONS, Bundle, Direction

Kind = Literal["client-request", "client-notification", "server-request", "server-notification", "event", "envelope"]
#: The clients that notice a change: all, only those with the capability (`experimental`), or only those without it.
Clients = Literal["all", "with", "without"]
_KINDS: tuple[Kind, ...] = (*DIRECTIONS, "event", "envelope")
#: The names of the counts in a report, by kind of method.
COUNTED: dict[Direction, str] = {
    "client-request": "client_methods",
    "server-notification": "server_notifications",
    "server-request": "server_requests",
    "client-notification": "client_notifications",
}


class Place(NamedTuple):
    """The place of a change: the `method` of the frames that show the change, and the path in these frames."""

    kind: Kind
    method: str
    path: Path

    @property
    def shown(self) -> str:
        """The path of the change, in readable form."""
        return show(self.path)


class DriftFinding(NamedTuple):
    """One judged change: its `rule` (which says if it is breaking), all its places, and the clients that notice it."""

    rule: Rule
    change: Change
    places: tuple[Place, ...]
    clients: Clients = "all"

    @property
    def breaking(self) -> bool:
        """True if the change can break a program that was written for the old protocol."""
        return self.rule.cls == "breaking"

    @property
    def hits(self) -> str:
        """Return which clients a change affects: "senders", "readers" or "nobody".

        Only clients count, because the server itself changes with the protocol.
        """
        if not self.breaking:
            return "nobody"
        return "senders" if self.rule.sender == "client" else "readers"

    @property
    def behind(self) -> str:
        """The capability that still gives a client the removed part; "" if the part was removed for all clients."""
        return CAPABILITY if self.clients == "without" and self.rule.id in GONE else ""

    @property
    def sentence(self) -> str:
        """Return a sentence about the effect of the change on a client."""
        return BEHIND[self.rule.sender] if self.behind else self.rule.sentence

    def rank(self) -> tuple[Any, ...]:
        """Return the sort key of a finding.

        Breaking findings come first, then findings for all clients, then whole methods before their parts; the rest is sorted by
        name.
        """
        place, rule = self.places[0], self.rule
        part = IDS.index(rule.id)
        return (
            not self.breaking,
            self.clients == "with",
            part > 1,
            _KINDS.index(place.kind),
            place.method,
            place.shown,
            part,
            rule.sender,
            self.change.what,
            self.clients,
        )


class Drift(NamedTuple):
    """All findings between two bundles, the breaking ones first.

    `uncompared` are sentences about parts that could not be compared.
    """

    old: str
    new: str
    counts: dict[str, dict[str, int]]
    findings: tuple[DriftFinding, ...]
    uncompared: tuple[str, ...] = ()

    def of(self, cls: str) -> list[DriftFinding]:
        """Return the findings of the class "breaking" or "additive"."""
        return [finding for finding in self.findings if finding.rule.cls == cls]


def counts(bundle: Bundle) -> dict[str, int]:
    """Return the number of methods of each kind in a bundle, and the number of types of ``codex/event``."""
    return {name: len(bundle.methods(direction)) for direction, name in COUNTED.items()} | {"events": len(bundle.events())}
