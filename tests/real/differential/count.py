"""How many fresh scenarios are equal on both servers: `python -m tests.real.differential.count SEED [N] [FAKE]`.

Plays N scenarios of each class (default 10), prints for each class how many are equal, and the first difference of each that is
not. A scenario that differs is played once more, as in the test. FAKE is another fake-codex to be compared.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from codex_replay.shell.http.backend_process import BackendProcess
from tests.fakes.scripted.differing import differences
from tests.real.differential import asking, test_differential


def drawn(kind: st.SearchStrategy[dict[str, Any]], number: int, count: int) -> list[dict[str, Any]]:
    """Return the scenarios of a class that a seed gives."""
    found: list[dict[str, Any]] = []

    @seed(number)
    @settings(max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        found.append(data.draw(kind))

    draw()
    return found


def main() -> None:
    """Count them."""
    number, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10
    test_differential.FAKE = sys.argv[3] if len(sys.argv) > 3 else test_differential.FAKE
    test_differential.WAIT = 20.0
    equal = whole = 0
    numbers = itertools.count()
    with tempfile.TemporaryDirectory() as folder, BackendProcess() as backend:
        root = Path(folder)
        real = test_differential.Real(root / "real", backend)
        for kind, strategy in test_differential.KINDS.items():
            good, shown = 0, []
            scenarios = drawn(strategy, number, count)
            for scenario in scenarios:
                found: list[str] = []
                for _ in range(2):
                    try:
                        said = real.play(scenario)
                        asked = real.asked()
                        imitated, wanted = test_differential.play_fake(root / str(next(numbers)), real.session.url, scenario)
                        found = differences(kind, said, imitated) + asking.differences(asked, wanted)
                    except AssertionError as error:
                        found = [str(error).partition("\n")[0]]
                        real.client.stop()
                        real = test_differential.Real(root / f"real{next(numbers)}", backend)
                    if not found:
                        break
                good += not found
                shown += found[:1]
            equal, whole = equal + good, whole + len(scenarios)
            sys.stdout.write(
                f"{kind}: {good} of {len(scenarios)}\n" + "".join(f"    {text[:300]}\n" for text in dict.fromkeys(shown))
            )
            sys.stdout.flush()
        real.client.stop()
    sys.stdout.write(f"seed {number}: {equal} of {whole} equal\n")


if __name__ == "__main__":
    main()
