"""The differences of a replay that come from another Codex version: absent methods, and members that are null."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from codex_replay.core.text.numbers import plural
from codex_replay.core.wire.jsonrpc import kind
from codex_replay.protocol.schema.bundle import EVENT_PREFIX, BundleError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codex_replay.core.cassette.frames import Frame
    from codex_replay.protocol.recordings.compare import Difference

#: The number of nulls that are listed one by one, and the number of places that the line about more of them names.
FEW, PLACES = 2, 3


def absent_methods(frames: Sequence[Frame], recorded: str, live: str) -> Counter[str]:
    """Return the methods of recorded server frames that the `live` version does not have, with the number of their frames.

    If both versions are the same, or if the schemas of the live version are not on this computer, no method is absent.
    """
    from codex_replay.protocol.schema.validate import Validator
    from codex_replay.shell.cassettes.bundle_check import bundle_of

    if live in (recorded, "unknown"):
        return Counter()
    try:
        validator = Validator(bundle_of(live))
    except BundleError:
        return Counter()
    sent = Counter(
        frame.value["method"] for frame in frames if frame.sender == "server" and kind(frame.value) in ("request", "notification")
    )
    return Counter({method: count for method, count in sent.items() if validator.frame_schema("server", method) is None})


def absent_text(absent: Counter[str], live: str) -> str:
    """Return a sentence about the absent methods; all methods `codex/event/*` are one family."""
    families: Counter[str] = Counter()
    for method, count in absent.items():
        families[f"{EVENT_PREFIX}*" if method.startswith(EVENT_PREFIX) else method] += count
    listed = ", ".join(f"{name} ({plural(count, 'frame')} of the recording)" for name, count in families.items())
    return f"Codex {live} does not have {listed}: not awaited, and not listed below."


def nulls_apart(differences: Sequence[Difference]) -> tuple[list[Difference], str]:
    """Return the differences without the members that are null in one run and missing in the other, and a line with their number.

    If there are only a few of these members, they stay at the end of the list, and the line is empty.
    """
    nulls = [one for one in differences if one.only is not None and one.left is None and one.right is None]
    others = [one for one in differences if one not in nulls]
    if len(nulls) <= FEW:
        return [*others, *nulls], ""
    places = list(dict.fromkeys(f"{one.path} of {one.label}" for one in nulls))
    more = f" and {len(places) - PLACES} more" if len(places) > PLACES else ""
    return (
        others,
        f"{plural(len(nulls), 'member')} are null in one run and missing in the other: {', '.join(places[:PLACES])}{more}.",
    )
