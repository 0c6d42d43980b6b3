"""The table of the mutants that are allowed: `pattern | statement or reason`, in allowed.txt, reviewed line by line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """Mutants whose id fits the pattern (`*` is any text) may survive, for this reason."""

    pattern: str
    reason: str

    def fits(self, mutant: str) -> bool:
        """Return True if the row allows the mutant of this id."""
        return re.fullmatch(".*".join(map(re.escape, self.pattern.split("*"))), mutant) is not None


def read(text: str) -> list[Row]:
    """Read the table. Raises ValueError for a line without a reason."""
    rows = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, bar, reason = (part.strip() for part in line.rpartition("|"))
            if not (pattern and bar and reason):
                raise ValueError(f"Add a statement or a reason behind a bar: {line}")
            rows.append(Row(pattern, reason))
    return rows


def load() -> list[Row]:
    """Return the rows of allowed.txt."""
    return read((Path(__file__).parent / "allowed.txt").read_text(encoding="utf-8"))
