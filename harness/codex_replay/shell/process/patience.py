"""Shorten the waits for a subject that several cases waited for without an answer, so that it costs seconds and not minutes.

Waits are counted separately for each cause, and in each worker of pytest-xdist. A limit that the user gives with `--wait` is
never shortened. The limit of a case that is rerun alone is not shortened either: a slow answer that the short limit cut off then
passes.
"""

from __future__ import annotations

from collections import Counter

#: After so many waits in vain of one cause, later cases wait only for this part of the limit: KNOWN if the cause is known.
CASES, KNOWN, PART = 3, 2, 0.3
#: The cause of a case whose answer did not come, if nothing more is known.
ANSWER = "answer"


class Patience:
    """The limits of the waits in the cases of one worker, in seconds.

    `given` is the limit of `--wait`; `alone` means that each case runs alone.
    """

    def __init__(self, given: float | None, *, alone: bool) -> None:
        self._given = given
        self._alone = alone
        self._in_vain: Counter[str] = Counter()

    def limit(self, default: float, cause: str = ANSWER) -> float:
        """Return the limit of the next wait for an answer: the given limit, otherwise `default` or a part of it."""
        return self._given or self.part(default, cause)

    def part(self, default: float, cause: str) -> float:
        """Return `default`, or a part of it if several waits for this cause lasted until their limit."""
        enough = self._in_vain[cause] >= (CASES if cause == ANSWER else KNOWN)
        return default * PART if enough and not self._alone else default

    def count(self, in_vain: bool, cause: str = ANSWER) -> None:
        """Count a wait that has ended; `in_vain` means that it lasted until its limit."""
        self._in_vain[cause] += in_vain
