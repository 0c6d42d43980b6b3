"""Write docs/coverage.md anew from the recordings: `python -m tests.tools.coverage_page > docs/coverage.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from codex_replay.plugin.reporting.coverage import Coverage, seen
from codex_replay.shell.cassettes.file import CassetteReader

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Keep the page's head, and replace its tables."""
    found = Coverage()
    for path in sorted((ROOT / "cassettes" / "app_server").rglob("*.ndjson")):
        with CassetteReader(path) as reader:
            found.add(reader.header.case, seen(reader))
    head = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8").partition("\n## ")[0]
    sys.stdout.write(f"{head}\n{found.markdown()}")


if __name__ == "__main__":
    main()
