"""Group differences that have one cause: if an id differs in one frame, it also differs in every other frame that names it.

If one of two recordings has one more turn, the id of every later turn differs, in each of its frames. If all these differences
were listed, dozens of lines such as `"2" and "3"` would hide the cause. Therefore only the first difference of each id is listed,
and the others are counted.
"""

from __future__ import annotations

from collections.abc import Iterable

from codex_replay.protocol.recordings.compare import Difference


def gathered(differences: Iterable[Difference]) -> list[tuple[Difference, int]]:
    """Return the differences in their order; repeated differences of one id become a count."""
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
    """Return the note with the number of further differences of an id; empty if there are none."""
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
