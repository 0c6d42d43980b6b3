"""Find the drift: the changes of the protocol between two schema bundles, each judged by a rule.

The module `walk` visits all types of messages, and notes each change with its places. The module `rules` judges each
change; the judgement depends on the sender of the message. A change in a type that many methods share is one finding with
many places.

A Codex version may keep a part of its protocol for clients that declare a capability (module `experimental`). For clients
with the capability, the Codex version has a second, experimental bundle. The experimental bundles of both versions are also
compared, and the module `clients` determines which clients notice each change.

The module `shapes.compare` compares two types, and `shapes.read` finds the values that a schema accepts. The module `findings`
has the result, `report` converts it to JSON, and `users` finds the recordings that a change affects.
"""

from __future__ import annotations

from collections.abc import Callable

from codex_replay.protocol.drift.clients import findings
from codex_replay.protocol.drift.experimental import SAID
from codex_replay.protocol.drift.findings import Drift, counts
from codex_replay.protocol.drift.walk import Walk
from codex_replay.protocol.schema.bundle import Bundle

#: Returns the experimental bundle next to a plain one; None if there is none; None and a sentence if it is not available.
ExperimentalOf = Callable[[Bundle], tuple[Bundle | None, str]]


def compare(old: Bundle, new: Bundle, experimental_of: ExperimentalOf = lambda plain: (None, "")) -> Drift:
    """Compare two bundles and the two experimental bundles; raises `BundleError` if one of them is not a schema bundle."""
    walk = Walk(old, new)
    uncompared = list(walk.uncompared)
    capable = None
    there, why = experimental_of(new)
    if why:
        uncompared.append(
            f"The changes for a client that sends {SAID} are unknown, and so is whether it can still use the removed parts: {why}"
        )
    else:
        before, unknown = experimental_of(old)
        if there is not None or before is not None:
            # What a version without the capability has is there for all.
            capable = Walk(before or old, there or new, like=walk)
            uncompared += [each for each in capable.uncompared if each not in uncompared]
        why = unknown
        if unknown:
            uncompared.append(f"The further changes for a client that sends {SAID} are unknown: {unknown}")
    found = findings(walk, capable)
    if why:
        # What there is for such a client now may have been there before.
        found = [each for each in found if each.clients != "with"]
    found.sort(key=lambda finding: finding.rank())
    return Drift(old.version, new.version, {"from": counts(old), "to": counts(new)}, tuple(found), tuple(uncompared))
