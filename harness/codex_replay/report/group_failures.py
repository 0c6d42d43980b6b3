"""Group failed cases by cause: one missing header can fail a hundred of them.

Two first lines have one cause if they differ in values alone (a number, a quoted text), or if a request was answered with one
status and one error code that the case did not expect. If a line has few variants, each is a group of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from codex_replay.core.text.plural import plural
from codex_replay.core.text.truncate import truncate
from codex_replay.report.data import Case

#: How many cases make a group, and how many groups the terminal and the page show; summary.md has all.
LEAST, MOST = 3, 5
#: Up to this number of variants, each variant of a line is a group of its own.
FEW = 3
#: Of a sentence no more characters are shown.
LONGEST = 300
#: What stands for a value, and how values are known: quoted texts (one may have been cut off), numbers and what begins with one.
VALUE = "\u2026"
_VALUES = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)|(?<![\w\'])b?\'[^\']*(?:\'(?!\w)|$)|\b\d[\w-]*(?:\.\w+)*')
#: A request with an unexpected status; `answer` is the status, and the error's code in parentheses.
_ANSWERED = re.compile(r"(?P<request>[A-Z]+ /[^\s?]*)\b.*?, but was answered (?P<answer>[1-5]\d\d(?: \([^()]*\))?)")
#: The end of a line that is continued by what a program wrote to stderr.
STDERR = " It said on stderr:"
#: Added by the cases after the one that reported a cause in full.
EARLIER = " (An earlier case has the details.)"


def cause(message: str) -> str:
    """Return the cause in a message, the same text for all messages of one cause; "" for an empty message."""
    line = _first_line(message)
    answered = _ANSWERED.match(line)
    return f"Requests were answered {answered['answer']}" if answered else _VALUES.sub(VALUE, line)


def groups(cases: Sequence[Case], least: int = LEAST, most: int | None = MOST) -> list[tuple[str, list[int]]]:
    """Return each cause that at least `least` failed cases have, with their indexes, the most frequent first; at most `most`."""
    lines = [_first_line(case["message"]) if case["outcome"] == "failed" else "" for case in cases]
    causes = {line: cause(line) for line in set(lines)}
    variants = Counter(causes.values())
    found: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        if line:
            one = variants[causes[line]] > FEW or _ANSWERED.match(line) is not None
            found.setdefault(causes[line] if one else line, []).append(index)
    several = [(_with_requests(text, (lines[i] for i in of)), of) for text, of in found.items() if len(of) >= least]
    return sorted(several, key=lambda group: -len(group[1]))[:most]


def counted_groups(cases: Sequence[Case]) -> list[tuple[str, int]]:
    """Return what `groups` does, with the number of cases."""
    return [(text, len(indexes)) for text, indexes in groups(cases)]


def sentences(cases: Iterable[Case], most: int | None = MOST) -> list[str]:
    """Return the groups as lines for people; where `most` leaves groups out, the last line counts them."""
    found = groups(list(cases), most=None)
    lines = [f"{plural(len(indexes), 'case')}: {truncate(text, LONGEST)}" for text, indexes in found[:most]]
    left = len(found) - len(lines)
    return [*lines, f"and {plural(left, 'cause')} more: summary.md lists all."] if left else lines


def _first_line(message: str) -> str:
    return message.strip().partition("\n")[0].removesuffix(EARLIER).removesuffix(STDERR)


def _with_requests(text: str, lines: Iterable[str]) -> str:
    """Name the requests of a group with one unexpected answer, the most frequent first; other texts stay."""
    requests = Counter(found["request"] for line in lines if (found := _ANSWERED.match(line)))
    return f"{text}: {', '.join(name for name, _ in requests.most_common(FEW))}." if requests else text
