"""Run the suite on one real Codex, and keep the traffic of each case.

The module `codex_replay.plugin.app_server.kept_runs` writes the traffic to files. A run takes minutes, so its results are kept in
the cache next to the binaries. The key of the results depends on everything that influences a run: the files of the suite,
the library and the fake backend with their tables, the binary, and the Python version. Code that only compares results
(`harness/codex_replay/protocol/behaviour/*.py`) is not part of the key.

    <cache>/behaviour/<key>/run.json      the number of cases, and the version; written last, so a folder without it is not a run
    <cache>/behaviour/<key>/cases/...     as harness/codex_replay/plugin/app_server/kept_runs.py leaves them
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from codex_replay.protocol.behaviour.case import Kept
from codex_replay.protocol.behaviour.run_form import form
from codex_replay.shell.cassettes.file import CassetteError, CassetteReader
from codex_replay.shell.codex.cache import cache_folder, locked, place_of, read_manifest
from codex_replay.shell.process.guard import descendants, sweep

SUITE = "app_server"
#: So many kept runs stay in the cache; the oldest go first.
STAY = 12
#: What takes part in a run, next to the suites: packages and what of them is left out.
PARTS = (
    "codex_replay/core",
    "codex_replay/protocol",
    "codex_replay/plugin",
    "codex_replay/shell",
    "codex_fakes",
)
_NO_PART = ("*/__pycache__/*", "*.pyc", "codex_replay/protocol/behaviour/*.py")
#: Settings of the caller's that would make another run of this one.
_NOT_HANDED_ON = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "CODEX_REPLAY_PROGRESS")

Step = Callable[[int, int | None], None]


class CannotRun(Exception):
    """The suite could not be run; the message of the exception is a sentence."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the app-server suite: the folder of the suites, the Codex version, the number of the run (1, or 2 for the
    control run), and the cases.

    `chosen` is an expression for pytest's option -k. `nodes` are single cases, each a path below the suites folder, `::`
    and a name. `wait` is the number of seconds that a case waits for one frame. `jobs` is the number of cases that run at
    the same time. In a `plain` run, each client sends the opening messages exactly as its case writes them. If `plain` is
    False, each client also declares the capability `experimentalApi` in its `initialize` message, so that the runs of two
    versions can be compared.
    """

    suites: Path
    version: str
    number: int = 1
    chosen: str = ""
    nodes: tuple[str, ...] = ()
    wait: float = 8.0
    jobs: int = 2
    plain: bool = False

    @property
    def place(self) -> Path:
        """Return the folder in which the results of the run are kept."""
        return cache_folder() / "behaviour" / key(self)


def folders(suites: Path) -> list[tuple[str, Path]]:
    """Return the folders whose files influence a run, by the name of the folder in the key."""
    found = [("suites", suites)]
    for name in PARTS:
        head, _, rest = name.partition("/")
        spec = importlib.util.find_spec(head)
        if spec is None or not spec.submodule_search_locations:
            raise CannotRun(f"There is no package {head} in this environment; install codex-replay again.")
        found.append((name, Path(spec.submodule_search_locations[0]) / rest))
    return found


def parts(suites: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the path of each file that influences a run, in order."""
    for name, folder in folders(suites):
        for path in sorted(folder.rglob("*")):
            label = f"{name}/{path.relative_to(folder).as_posix()}"
            if path.is_file() and not any(fnmatchcase(label, pattern) for pattern in _NO_PART):
                yield label, path


def key(run: Run) -> str:
    """Return the key under which the results of a run are kept, in hex.

    Any change in the files that influence a run changes the key.
    """
    manifest = read_manifest(place_of(run.version))
    digest = hashlib.sha256()
    message = [run.version, manifest.sha256 if manifest else None, run.number, run.chosen, run.nodes, run.wait, run.plain]
    digest.update(json.dumps([*message, sys.version, platform.platform()]).encode())
    for label, path in parts(run.suites):
        data = path.read_bytes()
        digest.update(f"\n{label} {len(data)}\n".encode() + data)
    return digest.hexdigest()[:32]


def kept(run: Run, step: Step = lambda done, total: None) -> Path:
    """Return the folder with the traffic of each case of a run.

    If the cache does not have the folder, run the suite now. The function `step` gets the number of finished cases, and the
    total number of cases (None if it is not known yet). Raises `CannotRun` if pytest cannot run the suite. After an interrupt,
    all started processes are ended, and no result is kept.
    """
    place = run.place
    place.parent.mkdir(parents=True, exist_ok=True)
    with locked(place, lambda: None):
        if not (place / "run.json").exists():
            draft = Path(tempfile.mkdtemp(prefix=f".tmp-{place.name}-", dir=place.parent))
            try:
                _run(run, draft, step)
                shutil.rmtree(place, ignore_errors=True)
                os.replace(draft, place)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
    os.utime(place)
    runs = [path for path in place.parent.iterdir() if (path / "run.json").exists()]
    for path in sorted(runs, key=lambda path: -path.stat().st_mtime)[STAY:]:
        shutil.rmtree(path, ignore_errors=True)
    return place


def _run(run: Run, draft: Path, step: Step) -> None:
    (draft / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")  # nothing of the project around counts
    with tempfile.TemporaryDirectory(prefix="codex-replay-behaviour-", ignore_cleanup_errors=True) as scratch:
        status, message = _guarded(_pytest(run, draft, Path(scratch)), draft / "output.txt", lambda: _count(draft, step))
    cases = _cases(draft)
    if status == 5 and run.chosen:
        raise CannotRun(f"No case of the suite matches -k {run.chosen!r}. Use words of case names, such as test_turns.")
    if status not in (0, 1) or not cases:
        tail = " ".join(message.decode("utf-8", "replace").split()[-60:]) or "nothing"
        what = "no case matches" if status == 5 else f"pytest ended with status {status}"
        raise CannotRun(f"The suite could not be run on Codex {run.version}: {what}. Last output: {tail}")
    value = {"version": run.version, "cases": len(cases), "chosen": run.chosen}
    (draft / "run.json").write_text(json.dumps(value) + "\n", encoding="utf-8")


def _pytest(run: Run, draft: Path, scratch: Path) -> list[str]:
    chosen = ["-k", run.chosen] if run.chosen else []
    return [
        *(sys.executable, "-P", "-m", "pytest", *(str(run.suites / node) for node in run.nodes or (SUITE,))),
        *("-c", str(draft / "pytest.ini"), "--rootdir", str(draft), "--basetemp", str(scratch / "t"), "-p", "no:cacheprovider"),
        *("--disable-plugin-autoload", "-p", "xdist", "-p", "codex_replay.suites"),
        *("-p", "codex_replay.plugin.app_server.kept_runs", "--keep-behaviour", str(draft)),
        *(("--keep-plain",) if run.plain else ()),
        *("--app-server", f"codex@{run.version}"),
        *("--record", "none", "--validate", "no", "--profile", "default", "--wait", f"{run.wait:g}", "--report", str(scratch)),
        *("-q", "-n", str(run.jobs) if run.jobs > 1 else "0", *chosen),
    ]


def _guarded(argv: Sequence[str], output: Path, tick: Callable[[], None]) -> tuple[int, bytes]:
    """Run a command as a child of the guard process, and call `tick` repeatedly.

    Return the exit status and the output of the command. No process of the command remains, even after an interrupt or an
    error in `tick`.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_HANDED_ON}
    with output.open("wb") as file:
        guard = subprocess.Popen(
            [sys.executable, "-P", "-m", "codex_replay.shell.process.guard", *argv],
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            while guard.poll() is None:
                tick()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    guard.wait(0.2)
            tick()
        finally:
            _end(guard)
    return guard.returncode, output.read_bytes()


def _end(guard: subprocess.Popen[bytes]) -> None:
    """End the guard process and its command, and wait until both have ended. A second interrupt does not shorten the wait."""
    assert guard.stdin is not None
    with contextlib.suppress(OSError):
        guard.stdin.close()  # which raises the error
    deadline = time.monotonic() + 30
    while guard.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            guard.wait(1)
    if guard.poll() is None:
        left = descendants(guard.pid)
        guard.kill()
        guard.wait()
        for pid in left:
            sweep(pid, 2)
            with contextlib.suppress(OSError):
                os.kill(pid, 9)


def _cases(folder: Path) -> list[Path]:
    return sorted((folder / "cases").rglob("*.json"))


def _count(draft: Path, step: Step) -> None:
    try:
        total = int(json.loads((draft / "collected.json").read_bytes())["cases"])
    except (OSError, ValueError, LookupError):
        total = None
    step(len(_cases(draft)), total)


def load(folder: Path, version: str, step: Callable[[], object] = lambda: None) -> dict[str, Kept]:
    """Return the results of a kept run by case.

    A case whose file cannot be read counts as lost. The function `step` is called for each case, to show the progress.
    `version` is the Codex version whose table normalises the run.
    """
    found = {}
    for path in _cases(folder):
        message = json.loads(path.read_bytes())
        outcome, sentence, servers = message["outcome"], message["sentence"], []
        try:
            if "lost" in message:
                raise CassetteError(message["lost"])
            for number, closed in enumerate(message["servers"], 1):
                with CassetteReader(path.with_name(f"{path.stem}.{number}.ndjson")) as reader:
                    servers.append(form(list(reader), version, closed))
        except CassetteError as error:
            outcome, sentence = "lost", str(error)
        found[message["case"]] = Kept(
            message["case"], outcome, message["early"], sentence, tuple(servers), message.get("racy", "")
        )
        step()
    return found


def nodes(folder: Path, cases: Sequence[str]) -> tuple[str, ...]:
    """Return the pytest node id of each case of a kept run: the path below the suites folder, `::` and the name."""
    message: Mapping[str, str] = {
        each["case"]: each["node"] for each in (json.loads(path.read_bytes()) for path in _cases(folder))
    }
    return tuple(message[case] for case in cases if case in message)
