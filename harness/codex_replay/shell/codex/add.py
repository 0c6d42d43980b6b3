"""Make the data of a Codex version from its binary: schema bundles, tables with their evidence, and recordings that replay
identically.

All files are made in a draft folder next to their final folder. At the end, the draft folder is renamed to the final
folder, so that the data of a version are complete or do not exist. The results of the long steps (the install, the bundles,
the runs of the suite) are kept in the cache under separate keys. After an interrupt, `codex add` continues with the first
missing step. Before the rename, the commands `cassette lint` and `replay` check each recording in the draft folder, as a
user would.

    <data>/versions/<version>/schema  schema-experimental  schema.sha256      the bundles
                              methods.json  config-keys.json  normalise.json  causality.json
                              cassettes/app_server/...                        cases that passed in each run, with equal traffic
                              learnt.json                                     the rows with their evidence; written last
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.protocol import data_tables
from codex_replay.protocol.learning import causes, normal
from codex_replay.protocol.schema.bundle import BundleError
from codex_replay.shell.cassettes.file import CassetteError, CassetteReader, CassetteWriter
from codex_replay.shell.codex import bundles, probe, schema_gen, suite_run
from codex_replay.shell.codex.install import Step, ensure
from codex_replay.shell.files import version_data
from codex_replay.shell.files.bundle_files import load_file
from codex_replay.shell.files.folder import Folder
from codex_replay.shell.rpc.client import SubjectFailure

#: The tables that a person writes, and why no run shows their content.
WRITTEN = {
    "forms, answers, turn, opening": "they define the messages of the scripted fake; recordings show values, but no rules",
    "coverage, unreachable": "a person must decide which values a client can ever see, and why it cannot see the others",
    "corrections": "where a version differs from its own bundle; `cassette lint` of the recordings shows whether any is needed",
}

#: The name that recordings give to the directory of a run.
HOME = "/home/user"
#: Runs the command `codex-replay` without a look at PATH.
_COMMAND = "from codex_replay.cli.entry import main; main()"


class CannotAdd(Exception):
    """A version cannot be added. The message is a sentence."""


@dataclass(slots=True)
class Listener:
    """Receives the progress of `add`: `stage` gets the current stage, and `step` the number of finished steps and the total."""

    stage: Callable[[str], None]
    step: Callable[[int, int | None], None]


@dataclass(slots=True)
class Scenario:
    """One case of the suite: for each run, the outcome of the case and the frames of its servers."""

    outcomes: list[str] = field(default_factory=list)
    runs: list[list[tuple[Header, list[Frame]]]] = field(default_factory=list)


def add(
    version: str, suites: Path, listener: Listener, *, runs: int = 2, wait: float = 3.0, jobs: int = 2, chosen: str = ""
) -> Path:
    """Add a Codex version and return the folder with its data.

    If codex-replay already has data of the version, the data are replaced.

    `runs` is the number of runs of the suite (at least 2). `wait` is the number of seconds that a case waits for one frame.
    `chosen` is an expression for pytest's option -k. Raises `CannotAdd`, `CodexInstallError` or `CannotRun`, each with a
    sentence.
    """
    if version in version_data.packaged():
        raise CannotAdd(f"Codex {version} is packaged with codex-replay; there is nothing to add.")
    place = Path(version_data.added_folder()) / version
    listener.stage(f"Installing Codex {version}")
    binary = ensure(version, lambda it: listener.step(*_progress(it)))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        root = Path(tempfile.mkdtemp(prefix=f".{version}-", dir=place.parent))
    except OSError as error:
        raise _unwritable(place, error) from None
    try:
        draft = root / "versions" / version
        draft.mkdir(parents=True)
        listener.stage("Generating the schema bundles")
        _bundles(version, draft)
        listener.stage("Asking for methods, refusals and configuration keys")
        probed = _probe(binary, version, draft)
        found = kept_runs(version, suites, listener, runs, wait, jobs, chosen)
        listener.stage("Learning the tables")
        learned = learn_tables(version, found, draft)
        listener.stage("Checking the recordings")
        learned |= {"cassettes": _cassettes(version, found, learned.pop("equal"), root, draft, listener, jobs)}
        write(draft / version_data.LEARNT, {"learnt": 1, "codex": version, "runs": runs, **probed, **learned, "written": WRITTEN})
        shutil.rmtree(place, ignore_errors=True)
        os.replace(draft, place)
    except (BundleError, SubjectFailure) as error:
        raise CannotAdd(f"Codex {version} cannot be added: {error}") from None
    except OSError as error:
        raise _unwritable(place, error) from None
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return place


def _unwritable(place: Path, error: OSError) -> CannotAdd:
    return CannotAdd(f"{place} cannot be written ({error.strerror}); set CODEX_REPLAY_DATA to another folder.")


def remove(version: str) -> bool:
    """Remove the data of a Codex version that `codex add` made.

    Return False if there are no data of the version. The installed binary of the version is not removed.
    """
    place = Path(version_data.added_folder()) / version
    there = place.is_dir()
    shutil.rmtree(place, ignore_errors=True)
    return there


def learnt(version: str) -> dict[str, Any] | None:
    """Return the content of a version's `learnt.json`, or None if the file does not exist."""
    try:
        found: dict[str, Any] = json.loads(version_data.read(f"{version}/{version_data.LEARNT}"))
    except (OSError, ValueError):
        return None
    return found


def _progress(step: Step) -> tuple[int, int | None]:
    return step.done, step.total


def write(path: Path, value: object) -> None:
    """Write a data file."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


# -- the parts -----------------------------------------------------------------------------------------------------------------


def _bundles(version: str, draft: Path) -> None:
    plain = bundles.cached(version) or bundles.generate(version)
    shutil.copytree(plain, draft / "schema")
    (draft / "schema.sha256").write_text(schema_gen.manifest(Folder(plain)), encoding="ascii")
    experimental, why = bundles.experimental_of(version, load_file(plain, version))
    if why:
        raise BundleError(why)
    if experimental is not None:
        shutil.copytree(bundles.cached(version, True) or plain, draft / "schema-experimental")


def _probe(binary: Path, version: str, draft: Path) -> dict[str, Any]:
    methods = probe.methods(binary, version)
    write(draft / "methods.json", methods)
    known = data_tables.load("config-keys")["keys"]
    keys, counted = probe.config_keys(binary, version, known)
    write(
        draft / "config-keys.json", {"about": f"The keys of config.toml that Codex {version} refuses [[[]]] under.", "keys": keys}
    )
    silent = [method for method, expected in methods.items() if not expected]
    return {
        "methods": {"listed": len(methods), "not_refused": silent, "evidence": 'each was sent with "params":5'},
        "config_keys": {"found": len(keys), "of": counted, "evidence": "each was set to [[[]]]"},
    }


def kept_runs(
    version: str, suites: Path, listener: Listener, runs: int, wait: float = 3.0, jobs: int = 2, chosen: str = ""
) -> dict[str, Scenario]:
    """Run the suite `runs` times on the real binary, which must be installed. Return the scenarios."""
    found: dict[str, Scenario] = {}
    for number in range(1, runs + 1):
        listener.stage(f"Running the suite, run {number} of {runs}")
        run = suite_run.Run(suites, version, number, chosen, (), wait, jobs, plain=True)
        folder = suite_run.kept(run, listener.step)
        for path in sorted((folder / "cases").rglob("*.json")):
            value = json.loads(path.read_bytes())
            scenario = found.setdefault(value["case"], Scenario())
            outcome = "racy" if value.get("racy") and value["outcome"] == "passed" else value["outcome"]
            scenario.outcomes.append("lost" if "lost" in value else outcome)
            scenario.runs.append([_read(each) for each in sorted(path.parent.glob(f"{path.stem}.[0-9]*.ndjson"))])
    return found


def _read(path: Path) -> tuple[Header, list[Frame]]:
    try:
        with CassetteReader(str(path)) as reader:
            return reader.header, list(reader)
    except CassetteError as error:
        raise CannotAdd(f"A run of the suite left a recording that cannot be read: {error}") from None


def learn_tables(version: str, found: Mapping[str, Scenario], draft: Path) -> dict[str, Any]:
    """Write normalise.json and causality.json into `draft`. Return the rows of both tables with their evidence."""
    pairs = []
    for name, scenario in found.items():
        for later in scenario.runs[1:]:
            for number, (one, other) in enumerate(zip(scenario.runs[0], later, strict=False), 1):
                pairs.append(normal.Pair(name if number == 1 else f"{name}.{number}", one[1], other[1]))
    base = data_tables.load("learning", data_tables.ANY)
    about = f"The values that differ between two runs of one scenario on Codex {version}; learnt from {len(pairs)} pairs of runs."
    learned = normal.learn(pairs, base, about, HOME)
    write(draft / "normalise.json", learned.table)
    whole = ((name, frames) for name, scenario in found.items() for run in scenario.runs for _, frames in run)
    table, rows = causes.learn(whole)
    write(draft / "causality.json", table)
    unequal = set(learned.unexplained)
    return {
        "scenarios": {"all": len(found), "passed": sum(set(each.outcomes) == {"passed"} for each in found.values())},
        "normalise": {"pairs": len(pairs), "rows": [row.encode() for row in learned.rows]},
        "causality": {"rows": rows, "not_seen": [row for row in causes.EFFECT if not table[row]]},
        "unexplained": learned.unexplained,
        "equal": {name for name in found if name not in unequal and not any(each.startswith(f"{name}.") for each in unequal)},
    }


# -- the recordings ------------------------------------------------------------------------------------------------------------


def _cassettes(
    version: str, found: Mapping[str, Scenario], equal: set[str], root: Path, draft: Path, listener: Listener, jobs: int
) -> dict[str, Any]:
    """Write the recordings of the cases that passed with equal traffic in all runs.

    Keep only the recordings that `lint` and `replay` accept.
    """
    paths = []
    manifest = (draft / "schema.sha256").read_text(encoding="ascii").splitlines()
    bundle = next((f"sha256:{line.split()[0]}" for line in manifest if line.endswith(f"  {data_tables.PRIMARY}")), "unknown")
    for name, scenario in found.items():
        if name in equal and set(scenario.outcomes) == {"passed"}:
            for number, (header, frames) in enumerate(scenario.runs[0], 1):
                path = draft / "cassettes" / f"{name}{'' if number == 1 else f'.{number}'}.ndjson"
                path.parent.mkdir(parents=True, exist_ok=True)
                with CassetteWriter(path, Header(version, bundle, header.case, header.origin)) as writer:
                    for frame in frames:
                        writer.write(frame)
                paths.append(path)
    environment = {**os.environ, "CODEX_REPLAY_DATA": str(root)}
    dropped: dict[str, str] = {}
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        for done, (path, why) in enumerate(zip(paths, pool.map(lambda each: _judged(each, environment), paths), strict=True), 1):
            listener.step(done, len(paths))
            if why:
                dropped[path.relative_to(draft / "cassettes").as_posix()] = why
                path.unlink()
    return {"kept": len(paths) - len(dropped), "dropped": dropped}


def _judged(path: Path, environment: Mapping[str, str]) -> str:
    """Return the reason why a recording is not kept, or "" if `lint` finds no error and the recording replays identically."""
    with CassetteReader(str(path)) as reader:
        speaks = any(frame.seam == "rpc" and frame.sender == "client" for frame in reader)
    commands: list[tuple[str, Sequence[str]]] = [("lint", ("cassette", "lint", str(path)))]
    commands += [("replay", ("replay", str(path), "--app-server", "fake"))] if speaks else []
    for what, words in commands:
        argv = [sys.executable, "-P", "-c", _COMMAND, *words]
        done = subprocess.run(argv, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        if done.returncode != 0:
            message = (done.stdout.strip() or done.stderr).decode("utf-8", "replace").split()
            return f"{what}: {' '.join(message)[:300]}"
    return ""
