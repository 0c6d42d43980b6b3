"""Group failed cases by cause, because one missing header can fail a hundred cases.

Two failures have the same cause if the first lines of their messages differ only in values (numbers, quoted texts). Two
failures also have the same cause if both report the same unexpected status and error code of an answer. If there are only a
few different values among the failures with one cause, each value becomes a separate group.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from codex_replay.core.text.numbers import plural
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
_ANSWERED = re.compile(r"(?P<request>[A-Z]+ /[^\s?]*)\b(?P<wanted>.*?), but was answered (?P<answer>[1-5]\d\d(?: \([^()]*\))?)")
#: The message of an error in the body of an answer, and a backslash before a sign in it.
_ERROR = re.compile(r'"message": ?"((?:[^"\\]|\\+.)+)')
_ESCAPED = re.compile(r"\\+(.)")
#: The status that a case expects, in the text before the unexpected status.
_WANTED = re.compile(r" must be answered (?P<status>.+?)(?= \(| if | while | for |$)")
#: The end of a sentence that announces details, which differ among the cases or follow on the next lines of the message.
_ANNOUNCED = re.compile(f":(?: {VALUE})?$")
#: A long quoted text at the end of a line, such as the body of an answer: it has ids, which differ in each case.
_QUOTED = re.compile(r""":\ b?(?:'(?:[^'\\]|\\.){80,}'?|"(?:[^"\\]|\\.){80,}"?)$""", re.VERBOSE)
#: The end of a line that is continued by what a program wrote to stderr.
STDERR = " The stderr of the proxy:"
#: How the reason of a skipped case begins, for pytest and in the suites.
_SKIPPED = re.compile(r"^(?:Skipped: )?(?:not verified: )?")
#: Added by the cases after the one that reported a cause in full.
EARLIER = " (An earlier case has the details.)"


def cause(message: str) -> str:
    """Return the cause in a failure message: a text that is equal for all messages with the same cause, or "" for an empty
    message.
    """
    line = _first_line(message)
    answered = _ANSWERED.match(line)
    return f"Requests got the status {answered['answer']}" if answered else _VALUES.sub(VALUE, line)


def groups(cases: Sequence[Case], least: int = LEAST, most: int | None = MOST) -> list[tuple[str, list[int]]]:
    """Return each cause that has at least `least` failed cases, with the indexes of its cases.

    The most frequent cause comes first; at most `most` causes are returned.
    """
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


def sentences(cases: Iterable[Case], most: int | None = MOST) -> list[str]:
    """Return the groups as readable lines; if `most` leaves groups out, the last line has their number."""
    found = groups(list(cases), most=None)
    lines = [f"{plural(len(indexes), 'case')}: {truncate(text, LONGEST)}" for text, indexes in found[:most]]
    left = len(found) - len(lines)
    return [*lines, f"and {left} more {'cause' if left == 1 else 'causes'}: summary.md lists all."] if left else lines


def skip_reasons(cases: Iterable[Case], most: int | None = MOST) -> list[str]:
    """Return the reasons of the skipped cases as readable lines, the most frequent first.

    If there are more than `most` reasons, the last line has the number of the other cases.
    """
    found = Counter(_SKIPPED.sub("", _first_line(case["message"])) for case in cases if case["outcome"] == "skipped")
    shown = found.most_common(most)
    lines = [f"{plural(count, 'case')}: {truncate(reason, LONGEST)}" for reason, count in shown]
    left = found.total() - sum(count for _, count in shown)
    return [*lines, f"{plural(left, 'case')} for other reasons: summary.md lists all."] if left else lines


def _first_line(message: str) -> str:
    line = message.strip().partition("\n")[0].removesuffix(EARLIER).removesuffix(STDERR)
    return line if _ANSWERED.match(line) else _QUOTED.sub(".", line)


def _with_requests(text: str, lines: Iterable[str]) -> str:
    """For a group with one unexpected status, name the requests, their expected status and the messages of the errors, the most
    frequent first. If the expected statuses differ, name the status next to each error. If all requests have the same special
    condition (such as a header), name the condition.

    For any other group, replace each `VALUE` in the text by the value itself, if it is the same in all `lines`. A text that ends
    with a colon gets a full stop: its details are not shown.
    """
    lines = list(lines)
    found = [match for line in lines if (match := _ANSWERED.match(line))]
    if not found:
        return _ANNOUNCED.sub(".", _with_values(text, lines) if VALUE in text else text)
    requests = Counter(match["request"] for match in found)
    each = [status["status"] if (status := _WANTED.search(match["wanted"])) else "a success" for match in found]
    wanted = Counter(each)
    instead, names = (", ".join(name for name, _ in counted.most_common(FEW)) for counted in (wanted, requests))
    conditions = {match["wanted"].partition(" must ")[0].rstrip(",") for match in found}
    errors = Counter(
        f"'{_unescaped(error[1])}'{f' (instead of {status})' if len(wanted) > 1 else ''}"
        for match, status in zip(found, each, strict=True)
        if (error := _ERROR.search(match.string))
    )
    messages = f" The errors: {'; '.join(error for error, _ in errors.most_common(FEW))}." if errors else ""
    return f"{text} instead of {instead}: {names}{conditions.pop() if len(conditions) == 1 else ''}.{messages}"


def _unescaped(text: str) -> str:
    return truncate(_ESCAPED.sub(r"\1", text), LONGEST)


def _with_values(text: str, lines: Sequence[str]) -> str:
    """Return the text with the values that are equal in all lines."""
    columns = zip(*(_VALUES.findall(line) for line in lines), strict=True)
    values = iter([column[0] if len(set(column)) == 1 else VALUE for column in columns])
    return re.sub(re.escape(VALUE), lambda _: next(values, VALUE), text)
