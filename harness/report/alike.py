"""What many failed cases say in the same words: one cause, such as a header that is missing, can fail a hundred of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from harness.core.brief import cut
from harness.core.counted import counted
from harness.report.model import Case

#: So many cases must say the same for it to be told, and so many such sentences are told.
LEAST, MOST = 3, 5
#: Of a sentence no more characters are shown.
LONGEST = 300


def alike(cases: Iterable[Case]) -> list[tuple[str, int]]:
    """Return the first lines that several failed cases say, each with how many do; the most frequent first."""
    said = Counter(line for case in cases if (line := said_first(case)))
    return [(line, count) for line, count in said.most_common(MOST) if count >= LEAST]


def said_first(case: Case) -> str:
    """Return the first line of what a failed case says; "" of any other."""
    return case["message"].strip().partition("\n")[0] if case["outcome"] == "failed" else ""


def sentences(cases: Iterable[Case]) -> list[str]:
    """Return the same as lines for people."""
    return [f"{counted(count, 'case')}: {cut(line, LONGEST)}" for line, count in alike(cases)]
