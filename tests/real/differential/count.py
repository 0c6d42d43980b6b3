"""How many fresh scenarios are equal on both servers: `python -m tests.real.differential.count SEED [N] [FAKE]`.

Plays N scenarios of each class (default 10), no two alike, prints for each class how many are equal, and the first difference of
each that is not. A scenario that differs is played once more, as in the test; how many were equal at this second try is printed,
with what differed at the first: what no list names. Where a version has names for its allowances (`later_differing`), it is
printed how many scenarios are equal only by them, and by which. FAKE is another fake-codex to be compared.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from codex_replay.shell.http.backend_process import BackendProcess
from tests.fakes.scripted.differing import differences
from tests.real.differential import asking, test_differential

#: A small class gives the same scenario several times: it is drawn from so often until there are enough.
ROUNDS = 8


def drawn(kind: st.SearchStrategy[dict[str, Any]], number: int, count: int) -> list[dict[str, Any]]:
    """Return the scenarios of a class that a seed gives, each once; fewer than `count` if the class has hardly more."""
    found: dict[str, dict[str, Any]] = {}

    @settings(max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        scenario = data.draw(kind)
        found.setdefault(json.dumps(scenario, sort_keys=True), scenario)

    for turn in range(ROUNDS):
        if len(found) < count:
            seed(f"{number} {turn}")(draw)()
    return list(found.values())[:count]


#: What differs, and the names of the allowances without which more would.
Found = tuple[list[str], list[str]]
Play = Callable[[str, dict[str, Any]], Found]


def count_equal(kinds: dict[str, st.SearchStrategy[dict[str, Any]]], number: int, count: int, play: Play) -> None:
    """Play the scenarios of each class with `play`; print how many are equal, and how."""
    whole: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for kind, strategy in kinds.items():
        tries = [_tries(play, kind, scenario) for scenario in drawn(strategy, number, count)]
        found = Counter({"of": len(tries), "equal": sum(not each[-1][0] for each in tries)})
        found["allowed"] = sum(not each[0][0] and bool(each[0][1]) for each in tries)
        found["second"] = sum(len(each) > 1 and not each[-1][0] for each in tries)
        whole += found
        names.update(name for each in tries if not each[-1][0] for name in each[-1][1])
        shown = dict.fromkeys(each[0][0][0] for each in tries if each[0][0])
        sys.stdout.write(f"{kind}: {_sentence(found)}\n" + "".join(f"    {text[:300]}\n" for text in shown))
        sys.stdout.flush()
    sys.stdout.write(f"seed {number}: {_sentence(whole)}\n")
    sys.stdout.write("".join(f"    allowed in {n}: {name}\n" for name, n in names.most_common()))


def _tries(play: Play, kind: str, scenario: dict[str, Any]) -> list[Found]:
    """Return what the first try found, and the second one if the first differed."""
    first = play(kind, scenario)
    return [first, play(kind, scenario)] if first[0] else [first]


def _sentence(found: Counter[str]) -> str:
    ways = {"allowed": "by a named allowance", "second": "at the second try"}
    return f"{found['equal']} of {found['of']} equal" + "".join(f", {found[k]} {text}" for k, text in ways.items() if found[k])


def main() -> None:
    """Count them."""
    number, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10
    test_differential.FAKE = sys.argv[3] if len(sys.argv) > 3 else test_differential.FAKE
    test_differential.WAIT = 20.0
    numbers = itertools.count()
    with tempfile.TemporaryDirectory() as folder, BackendProcess() as backend:
        root = Path(folder)
        real = test_differential.Real(root / "real", backend)

        def play(kind: str, scenario: dict[str, Any]) -> Found:
            nonlocal real
            try:
                said = real.play(scenario)
                asked = real.asked()
                imitated, wanted = test_differential.play_fake(root / str(next(numbers)), real.session.url, scenario)
            except AssertionError as error:
                real.client.stop()
                real = test_differential.Real(root / f"real{next(numbers)}", backend)
                return [str(error).partition("\n")[0]], []
            return differences(kind, said, imitated) + asking.differences(asked, wanted), []

        count_equal(test_differential.KINDS, number, count, play)
        real.client.stop()


if __name__ == "__main__":
    main()
