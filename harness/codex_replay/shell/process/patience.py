"""Shorten the waits for a subject that several cases waited for without an answer, so that it costs seconds and not minutes.

Waits are counted separately for each cause. The workers of pytest-xdist count together: each appends a line to one file. A limit
that the user gives with `--wait` is never shortened. The limit of a case that is rerun alone is not shortened either: a slow
answer that the short limit cut off then passes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

#: After so many waits in vain of one cause, later cases wait only for this part of the limit: KNOWN if the cause is known.
CASES, KNOWN, PART = 3, 2, 0.3
#: The cause of a case whose answer did not come, if nothing more is known.
ANSWER = "answer"


class Patience:
    """The limits of the waits in the cases of a run, in seconds.

    `given` is the limit of `--wait`; `alone` means that each case runs alone. `shared` is the file in which all workers of the
    run count their waits.
    """

    def __init__(self, given: float | None, *, alone: bool, shared: Path | None = None) -> None:
        self._given = given
        self._alone = alone
        self._shared = shared
        self._own: Counter[str] = Counter()

    def limit(self, default: float, cause: str = ANSWER) -> float:
        """Return the limit of the next wait for an answer: the given limit, otherwise `default` or a part of it."""
        return self._given or self.part(default, cause)

    def part(self, default: float, cause: str) -> float:
        """Return `default`, or a part of it if several waits for this cause were in vain."""
        enough = self._in_vain()[cause] >= (CASES if cause == ANSWER else KNOWN)
        return default * PART if enough and not self._alone else default

    def count(self, in_vain: bool, cause: str = ANSWER) -> None:
        """Count a wait that has ended; `in_vain` means that it lasted until its limit."""
        self._own[cause] += in_vain
        if in_vain and self._shared is not None:
            with self._shared.open("a", encoding="utf-8") as file:
                file.write(f"{cause}\n")

    def _in_vain(self) -> Counter[str]:
        if self._shared is None or not self._shared.exists():
            return self._own
        return Counter(self._shared.read_text(encoding="utf-8").splitlines())
