"""Drift: what changed in the protocol between two schema bundles, judged by the rules.

Strategy: `drift_walk` goes over all that stands on the wire and notes each change with its places, `drift_rules` judges it by
who sends it. A change in a type that many methods share is one finding with many places.

A version may keep a part of its protocol for clients that say a capability (`experimental`). It has a second bundle then, and
such clients speak that one: so what they notice is compared too, and `drift_clients` tells who notices what.

Where to look: `drift_rules` what breaks whom; `drift_walk` methods, params, results, events; `drift_shapes` two types, with
`drift_limits` (bounds, free keys) and `drift_variants` (unions); `drift_read` what a schema admits, with `drift_model` (its form)
and `drift_sets` (unions and ``allOf``); `drift_same` what need not be compared; `drift_clients` who notices; `drift_findings`
what is found, in its order; `drift_report` the JSON; `drift_use` which cassettes are hit.
"""

from __future__ import annotations

from collections.abc import Callable

from codex_replay.protocol.drift.clients import findings
from codex_replay.protocol.drift.experimental import SAID
from codex_replay.protocol.drift.findings import Drift, counts
from codex_replay.protocol.drift.walk import Walk
from codex_replay.protocol.schema.bundle import Bundle

#: Returns the experimental bundle beside a plain one, or None where there is none, or where it cannot be had and a sentence why.
Beside = Callable[[Bundle], tuple[Bundle | None, str]]


def compare(old: Bundle, new: Bundle, beside: Beside = lambda plain: (None, "")) -> Drift:
    """Compare two bundles and what is `beside` them; raises `BundleError` when one of them turns out to be none."""
    walk = Walk(old, new)
    uncompared = list(walk.uncompared)
    capable = None
    there, why = beside(new)
    if why:
        uncompared.append(
            f"What a client that says {SAID} notices, and so whether what is gone is still there for it, is not known: {why}"
        )
    else:
        before, unknown = beside(old)
        if there is not None or before is not None:
            # What a version without the capability has is there for all.
            capable = Walk(before or old, there or new, like=walk)
            uncompared += [each for each in capable.uncompared if each not in uncompared]
        why = unknown
        if unknown:
            uncompared.append(f"What a client that says {SAID} notices beyond all this is not known: {unknown}")
    found = findings(walk, capable)
    if why:
        # What there is for such a client now may have been there before.
        found = [each for each in found if each.clients != "with"]
    found.sort(key=lambda finding: finding.rank())
    return Drift(old.version, new.version, {"from": counts(old), "to": counts(new)}, tuple(found), tuple(uncompared))
