"""What many failed cases say in the same words: one cause, such as a header that is missing, can fail a hundred of them.

Where the words are the same and only the values in them differ (a number, a quoted text), the values are left out, unless there
are so few that each can be told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from harness.core.brief import cut
from harness.core.counted import counted
from harness.report.model import Case

#: So many cases must say the same for it to be told, and so many such sentences are told.
LEAST, MOST = 3, 5
#: More lines than these that differ in their values alone are told as one.
FEW = 3
#: Of a sentence no more characters are shown.
LONGEST = 300
#: What stands for a value, and how values are known: quoted texts (one may have been cut off), numbers and what begins with one.
VALUE = "\u2026"
_VALUES = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)|(?<![\w\'])b?\'[^\']*(?:\'(?!\w)|$)|\b\d[\w-]*(?:\.\w+)*')


def groups(cases: Sequence[Case]) -> list[tuple[str, list[int]]]:
    """Return what several failed cases say in their first lines, with the indexes of those cases; the most frequent first."""
    lines = [said_first(case) for case in cases]
    forms = {line: _VALUES.sub(VALUE, line) for line in set(lines)}
    variants = Counter(forms.values())
    found: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        if line:
            form = forms[line]
            found.setdefault(form if variants[form] > FEW else line, []).append(index)
    several = [(said, indexes) for said, indexes in found.items() if len(indexes) >= LEAST]
    return sorted(several, key=lambda group: -len(group[1]))[:MOST]


def alike(cases: Sequence[Case]) -> list[tuple[str, int]]:
    """Return what `groups` does, with the number of cases."""
    return [(said, len(indexes)) for said, indexes in groups(cases)]


def said_first(case: Case) -> str:
    """Return the first line of what a failed case says; "" of any other."""
    return case["message"].strip().partition("\n")[0] if case["outcome"] == "failed" else ""


def sentences(cases: Iterable[Case]) -> list[str]:
    """Return the same as lines for people."""
    return [f"{counted(count, 'case')}: {cut(line, LONGEST)}" for line, count in alike(list(cases))]
