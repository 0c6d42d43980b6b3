"""Learn the tables of a packaged version again: `python -m tests.tools.packaged_tables VERSION`.

As `codex-replay codex add`, which never replaces a packaged version: the suite runs twice on the real binary, and the rows come
from the differences. The recordings in tests/data/sessions-VERSION are further evidence. A row whose evidence is neither a case
of the suite nor one of these recordings stays, with its evidence: what another program recorded cannot be recorded again here.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from codex_replay.shell.cassettes.file import CassetteReader
from codex_replay.shell.codex import add
from codex_replay.shell.files import version_data

ROOT = Path(__file__).resolve().parents[2]
RUNS = 2
Rows = list[dict[str, Any]]


def sessions(version: str) -> dict[str, Any]:
    """Return the recorded sessions of a version: each was made twice."""
    found: dict[str, Any] = {}
    for path in sorted((ROOT / "tests" / "data" / f"sessions-{version}").glob("*.ndjson")):
        with CassetteReader(str(path)) as reader:
            scenario = found.setdefault(path.name.partition(".")[0], add.Scenario())
            scenario.runs.append([(reader.header, list(reader))])
    return found


def add_older(before: Rows, learnt: Rows, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Add the rows of the packaged table that no run of today showed, to the rows and to the table."""
    known = {(row["part"], row["rule"]) for row in learnt}
    for row in before:
        part, rule = row["part"], row["rule"]
        if (part, rule) in known:
            continue
        learnt.append(row)
        if isinstance(old[part], dict):
            new[part][rule] = old[part][rule]
        else:
            new[part] += [each for each in old[part] if rule in (each, _name(each)) and each not in new[part]]


def _name(row: Any) -> str:
    """Return the name of a row in learnt.json."""
    if not isinstance(row, dict):
        return str(row)
    return str(row["pattern"]) if "pattern" in row else " / ".join(side[0] for side in row["between"])


def main() -> None:
    """Write normalise.json, causality.json and learnt.json of the version."""
    version = sys.argv[1]
    place = Path(version_data.path_of(version))
    listener = add.Listener(lambda what: print(what, flush=True), lambda done, total: None)
    suite = add.kept_runs(version, ROOT / "suites", listener, RUNS)
    before = json.loads((place / version_data.LEARNT).read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        learned = add.learn_tables(version, {**suite, **sessions(version)}, Path(folder))
        for name in ("normalise", "causality"):
            old, new = (json.loads((each / f"{name}.json").read_bytes()) for each in (place, Path(folder)))
            add_older(before[name]["rows"], learned[name]["rows"], old, new)
            add.write(place / f"{name}.json", new)
    learned["causality"]["not_seen"] = [row for row in learned["causality"]["not_seen"] if not new[row]]
    del learned["equal"]
    learned["scenarios"] = {**learned["scenarios"], "sessions": len(sessions(version))}
    add.write(place / version_data.LEARNT, {**before, "runs": RUNS, **learned, "written": add.WRITTEN})


if __name__ == "__main__":
    main()
