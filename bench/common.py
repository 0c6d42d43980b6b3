"""What the benchmarks share: the subjects' commands, a recording of the real binary to replay, and how a row is told."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from codex_replay.shell.codex.cache import find_installed

ROOT = Path(__file__).resolve().parent.parent
FAKE = str(Path(sys.executable).with_name("fake-codex"))
CASSETTE = ROOT / "cassettes" / "app_server" / "test_v2" / "text_turn.ndjson"
INITIALIZE = b'{"id":0,"method":"initialize","params":{"clientInfo":{"name":"bench","title":null,"version":"1"}}}\n'


class NotReady(Exception):
    """The benchmark lacks something; the text says what to do."""


@dataclass(frozen=True)
class Row:
    """One figure: what was measured, its value, the limit that it is held to and whether it must be below or above."""

    name: str
    value: float
    unit: str
    limit: float
    below: bool
    detail: str

    @property
    def met(self) -> bool:
        """Whether the figure is on the right side of its limit."""
        return self.value <= self.limit if self.below else self.value >= self.limit

    def line(self) -> str:
        """Return the row for people."""
        sign = "<=" if self.below else ">="
        mark = "ok  " if self.met else "MISS"
        return f"{mark} {self.name}: {self.value:,.3g} {self.unit} (must be {sign} {self.limit:,g}); {self.detail}"

    def as_json(self) -> str:
        """Return the row for machines."""
        return json.dumps({"name": self.name, "value": self.value, "unit": self.unit, "limit": self.limit, "met": self.met})


def real_codex(version: str = "0.92.0") -> str:
    """Return the real binary; raises `NotReady` when it is not installed."""
    path = find_installed(version)
    if path is None:
        raise NotReady(f"The real Codex is not installed; run `codex-replay codex install {version}` first.")
    return str(path)
