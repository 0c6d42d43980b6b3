"""Group differences with one cause: an id that differs in one frame also differs in every other frame that contains it.

For example, if one of two recordings has an additional turn, the ids of all later turns differ, in all frames of these
turns. A list of all differences in ids would hide the cause behind dozens of lines such as `"2" and "3"`. For each id, only
the first difference is listed, and the others are counted.
"""

from __future__ import annotations

from collections.abc import Iterable

from codex_replay.protocol.recordings.compare import Difference


def gathered(differences: Iterable[Difference]) -> list[tuple[Difference, int]]:
    """Return the differences in their order; for each id, only the first difference is kept, with the number of the others."""
    found: list[Difference] = []
    counts: list[int] = []
    first: dict[tuple[str, str], int] = {}
    for one in differences:
        if _is_id(one) and (place := first.setdefault((one.left, one.right), len(found))) < len(found):
            counts[place] += 1
            continue
        found.append(one)
        counts.append(0)
    return list(zip(found, counts, strict=True))


def following(count: int) -> str:
    """Return a note with the number of further differences of one id; return "" if there are none."""
    return f" (and in {count} more place{'s' if count > 1 else ''} with this id)" if count else ""


def _is_id(one: Difference) -> bool:
    """Return True if two ids were compared, by the last key of the path."""
    key = one.path.rpartition(".")[2]
    return (
        one.kind == "changed"
        and one.only is None
        and type(one.left) is type(one.right) is str
        and (key in ("id", "ids") or key.endswith(("Id", "_id")))
    )
