"""How many fresh scenarios of the later version are equal: `python -m tests.real.differential.count_later SEED [N]`.

Plays N scenarios of each class (default 10), prints for each class how many are equal, and the first difference of each that
is not. A scenario that differs is played once more, as in the test.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from codex_replay.shell.http.backend_process import BackendProcess
from tests.real.differential.count import drawn
from tests.real.differential.later import KINDS, Both
from tests.real.differential.test_later import FAKE, VERSION, differences


def main() -> None:
    """Count them."""
    number, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10
    equal = whole = 0
    with tempfile.TemporaryDirectory() as folder, BackendProcess() as backend:
        both = Both(Path(folder), VERSION, backend, FAKE)
        for kind, strategy in KINDS.items():
            good, shown = 0, []
            scenarios = drawn(strategy, number, count)
            for scenario in scenarios:
                found: list[str] = []
                for _ in range(2):
                    try:
                        found = differences(*both.play(scenario))
                    except AssertionError as error:
                        found = [str(error).partition("\n")[0]]
                    if not found:
                        break
                good += not found
                shown += found[:1]
            equal, whole = equal + good, whole + len(scenarios)
            report = "".join(f"    {text[:300]}\n" for text in dict.fromkeys(shown))
            sys.stdout.write(f"{kind}: {good} of {len(scenarios)}\n{report}")
            sys.stdout.flush()
    sys.stdout.write(f"seed {number}: {equal} of {whole} equal\n")


if __name__ == "__main__":
    main()
