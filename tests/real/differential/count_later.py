"""How many fresh scenarios of the later version are equal: `python -m tests.real.differential.count_later SEED [N]`.

Counts N scenarios of each class (default 10) as `count` does for 0.92.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from codex_replay.shell.http.backend_process import BackendProcess
from tests.real.differential.count import Found, count_equal
from tests.real.differential.later import Both
from tests.real.differential.later_differing import VERSION, allowances, differences
from tests.real.differential.test_later import FAKE, KINDS


def main() -> None:
    """Count them."""
    number, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10
    with tempfile.TemporaryDirectory() as folder, BackendProcess() as backend:
        both = Both(Path(folder), VERSION, backend, FAKE)

        def play(_kind: str, scenario: dict[str, Any]) -> Found:
            try:
                sides = both.play(scenario)
            except AssertionError as error:
                return [str(error).partition("\n")[0]], []
            return differences(*sides), allowances(*sides)

        count_equal(KINDS, number, count, play)


if __name__ == "__main__":
    main()
