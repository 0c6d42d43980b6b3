"""Shorten the waits for a program under test that has left several cases without an answer, so that it costs seconds and not
minutes.

Unsuccessful waits are counted separately for each cause. All workers of pytest-xdist append to one file, and therefore
count together. A limit that the user gives with `--wait` is never shortened. The time limit of a case that is rerun alone
is not shortened either, so that the case passes if only its answer is slow.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

#: After so many waits in vain of one cause, later cases wait only for this part of the limit: KNOWN if the cause is known.
CASES, KNOWN, PART = 3, 2, 0.3
#: The cause of a case whose answer did not come, if nothing more is known.
ANSWER = "answer"


class Patience:
    """The time limits of the waits in the cases of a run, in seconds.

    `given` is the time limit of the option `--wait`. `alone` is True if each case is rerun alone. `shared` is the file in
    which all workers of the run count their unsuccessful waits.
    """

    def __init__(self, given: float | None, *, alone: bool, shared: Path | None = None) -> None:
        self._given = given
        self._alone = alone
        self._shared = shared
        self._own: Counter[str] = Counter()

    def limit(self, default: float, cause: str = ANSWER, least: float = 0.0) -> float:
        """Return the time limit of the next wait for an answer: the limit of `--wait`, otherwise `default` or a part of
        `default`.
        """
        return self._given or self.part(default, cause, least)

    def part(self, default: float, cause: str, least: float = 0.0) -> float:
        """Return the time limit `default`, or a part of it if several waits with the same cause were unsuccessful.

        The part is at least `least` seconds.
        """
        enough = self._in_vain()[cause] >= (CASES if cause == ANSWER else KNOWN)
        return max(default * PART, min(default, least)) if enough and not self._alone else default

    def count(self, in_vain: bool, cause: str = ANSWER) -> None:
        """Count a completed wait for the program under test. `in_vain` is True if the wait reached its time limit."""
        self._own[cause] += in_vain
        if in_vain and self._shared is not None:
            with self._shared.open("a", encoding="utf-8") as file:
                file.write(f"{cause}\n")

    def _in_vain(self) -> Counter[str]:
        if self._shared is None or not self._shared.exists():
            return self._own
        return Counter(self._shared.read_text(encoding="utf-8").splitlines())
