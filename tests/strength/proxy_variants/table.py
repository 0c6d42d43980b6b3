"""The one table of variants, read from table.txt: `name | profile | checks that must see it | what is wrong`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PROFILES = {"S": "as-specified", "W": "works-on-0.92", "T": "speaks-v2", "B": "both"}


class Row(NamedTuple):
    """One variant. `hit_by` are ids of checks of the suite; `[GLOB]` behind one tells which of its cases see it first."""

    name: str
    profile: str
    wrong: str
    hit_by: tuple[str, ...]

    @property
    def checks(self) -> list[str]:
        """The ids of the checks that must see it."""
        return list(dict.fromkeys(name.partition("[")[0] for name in self.hit_by))


def read(text: str) -> list[Row]:
    """Read the table; raises ValueError for an invalid line."""
    rows = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("|", 3)]
        if len(cells) != 4 or cells[1] not in PROFILES or not all(cells):
            raise ValueError(f"this is no line of the table: {line}")
        name, profile, hit_by, wrong = cells
        rows.append(Row(name, PROFILES[profile], wrong, tuple(hit_by.split())))
    return rows


TABLE = read((Path(__file__).parent / "table.txt").read_text(encoding="utf-8"))
