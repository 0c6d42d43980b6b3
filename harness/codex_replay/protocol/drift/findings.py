"""What a comparison of two bundles has found: findings, the places where they stand, and who notices them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from codex_replay.protocol.drift.experimental import CAPABILITY
from codex_replay.protocol.drift.rules import BEHIND, GONE, IDS, Rule
from codex_replay.protocol.drift.shapes.change import Change, Path, show
from codex_replay.protocol.schema.bundle import DIRECTIONS, Bundle, Direction

Kind = Literal["client-request", "client-notification", "server-request", "server-notification", "event", "envelope"]
#: Which clients notice a change: all, only those that say the capability (`experimental`), or only those that do not.
Clients = Literal["all", "with", "without"]
_KINDS: tuple[Kind, ...] = (*DIRECTIONS, "event", "envelope")
#: What a report calls the count of each kind of method.
COUNTED: dict[Direction, str] = {
    "client-request": "client_methods",
    "server-notification": "server_notifications",
    "server-request": "server_requests",
    "client-notification": "client_notifications",
}


class Place(NamedTuple):
    """Where a change stands on the wire: in which frames of `method`, at which path."""

    kind: Kind
    method: str
    path: Path

    @property
    def shown(self) -> str:
        """The path as people write it."""
        return show(self.path)


class DriftFinding(NamedTuple):
    """One change judged: its `rule` (with the class), every place where it stands, and which clients notice it."""

    rule: Rule
    change: Change
    places: tuple[Place, ...]
    clients: Clients = "all"

    @property
    def breaking(self) -> bool:
        """True if somebody who relied on the old protocol is hit."""
        return self.rule.cls == "breaking"

    @property
    def hits(self) -> str:
        """Who is hit: "senders", "readers" or "nobody". It is the client's side that relies, so it is clients."""
        if not self.breaking:
            return "nobody"
        return "senders" if self.rule.sender == "client" else "readers"

    @property
    def behind(self) -> str:
        """The capability that a client must say for what is gone to be there all the same; "" if it is gone for all."""
        return CAPABILITY if self.clients == "without" and self.rule.id in GONE else ""

    @property
    def sentence(self) -> str:
        """What it means to the client."""
        return BEHIND[self.rule.sender] if self.behind else self.rule.sentence

    def rank(self) -> tuple[Any, ...]:
        """Put what breaks first, what all notice, whole methods before their parts, and the rest as people look for it."""
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
    """All findings between two bundles, the breaking ones first; `uncompared` are sentences on what could not be judged."""

    old: str
    new: str
    counts: dict[str, dict[str, int]]
    findings: tuple[DriftFinding, ...]
    uncompared: tuple[str, ...] = ()

    def of(self, cls: str) -> list[DriftFinding]:
        """Return the findings of the class "breaking" or "additive"."""
        return [finding for finding in self.findings if finding.rule.cls == cls]


def counts(bundle: Bundle) -> dict[str, int]:
    """Return how many methods of each kind a bundle has, and how many types of ``codex/event``."""
    return {name: len(bundle.methods(direction)) for direction, name in COUNTED.items()} | {"events": len(bundle.events())}
