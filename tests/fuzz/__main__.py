"""Run the fuzzer: `python -m tests.fuzz [--seed N] [--count N] [--case I] [--state DIR] [TARGET ...]`.

A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from random import Random

from tests.fuzz.frame import State, fuzz, load, save, targets


def main() -> int:
    """Run the targets; return 1 if there are findings."""
    known = targets()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz the programs of codex-replay.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"one of {', '.join(known)} (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other cases")
    parser.add_argument("--count", type=int, help="how many cases of each target (default: its own number)")
    parser.add_argument("--case", type=int, help="run this case alone, and print it")
    parser.add_argument("--state", type=Path, default=Path("build/fuzz"), help="where a stopped run is kept")
    given = parser.parse_args()
    if unknown := [name for name in given.targets if name not in known]:
        parser.error(f"{unknown[0]} is no target; the targets are {', '.join(known)}.")
    failed = False
    for name in given.targets or known:
        path = given.state / f"{name}.json"
        with known[name]() as target:
            if given.case is not None:
                data = target.case(Random(f"{given.seed}:{name}:{given.case}"))
                print(f"{name} case {given.case}: {data!r}\n{target.run(data) or 'nothing is wrong'}")
                continue
            state, count = load(path, given.seed), given.count or target.total
            begun, last = (state.done, time.monotonic()), [0.0]

            def saved(state: State) -> None:
                save(path, state)  # noqa: B023 - called in this turn of the loop only
                now = time.monotonic()
                if now - last[0] >= 5:  # noqa: B023
                    last[0] = now  # noqa: B023
                    rate = (state.done - begun[0]) / max(now - begun[1], 0.001)  # noqa: B023
                    print(f"{name}: {state.done} of {count}, {rate:.0f} a second, {len(state.findings)} findings", flush=True)  # noqa: B023

            fuzz(name, target, state, count, saved)
            save(path, state)
        print(f"{name}: {state.done} cases, seed {given.seed}, {len(state.findings)} findings")
        for found in state.findings:
            failed = True
            again = f"python -m tests.fuzz {name} --seed {given.seed} --case {found['case']}"
            print(f"  case {found['case']}: {found['wrong']}; repeat it: {again}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
