"""`python -m bench [NAME...]` (`make bench`): run them; exit status 1 if a figure misses its limit, 2 if one cannot run."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from bench.common import NotReady

NAMES = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))


def main(arguments: list[str]) -> int:
    """Run the named benchmarks, or all; a module `bench_NAME` has a function `rows`."""
    as_json = "--json" in arguments
    wanted = [name for name in arguments if name != "--json"] or NAMES
    unknown = sorted(set(wanted) - set(NAMES))
    if unknown:
        print(f"bench: there is no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}.", file=sys.stderr)
        return 2
    missed = False
    for name in wanted:
        print(f"bench {name} ...", file=sys.stderr, flush=True)
        try:
            rows = importlib.import_module(f"bench.bench_{name}").rows()
        except NotReady as error:
            print(f"bench {name}: {error}", file=sys.stderr)
            return 2
        for row in rows:
            print(row.as_json() if as_json else row.line(), flush=True)
            missed |= not row.met
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
