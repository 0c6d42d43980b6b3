"""Runs many subjects against the cases of one collection, each in a process of its own.

Strategy. pytest has started and collected once; every job is a fork of it, which is a hundred times cheaper than another pytest.
The fork runs cases as any run does, with the subject's command as its `--proxy`, and tells each verdict through a pipe. A job
that takes too long is ended; whatever way it ends, its processes and its folder go with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from codex_replay.plugin.base.options import read_settings

#: The proxy that a case asked, kept for the verdict: pytest forgets it with the case.
PROXY: pytest.StashKey[Any] = pytest.StashKey()
Cases = list[tuple[str, list[pytest.Item]]]
#: Seconds that a job has to end its processes once it was told to.
GRACE = 8.0


class Told(NamedTuple):
    """The verdict of one case: green, red, skipped, or crash (the subject did not start, or broke down)."""

    check: str
    case: str
    profile: str | None
    outcome: str
    why: str


@dataclass
class Job:
    """A subject: the checks to try, each to its first red case, and `others`, until one is red, when none of them was."""

    name: str
    argv: list[str]
    profile: str | None
    checks: Cases
    others: Cases
    seconds: float


Ended = Callable[[Job, list[Told], str | None, float], None]


@dataclass
class _Running:
    job: Job
    pid: int
    pipe: int
    folder: Path
    begun: float
    buffer: bytes = b""
    told: list[Told] = field(default_factory=list)
    why: str | None = None
    term: float | None = None

    def read(self) -> bool:
        """Take in what was told; False at the end."""
        data = os.read(self.pipe, 1 << 16)
        *whole, self.buffer = (self.buffer + data).split(b"\n")
        self.told += [Told(*json.loads(line)) for line in whole]
        return bool(data)


def run_jobs(session: pytest.Session, jobs: list[Job], most: int, ended: Ended) -> None:
    """Run the jobs, `most` of them at a time; `ended(job, told, why, seconds)` after each, `why` when it was ended by force."""
    waiting = list(reversed(jobs))
    running: list[_Running] = []
    base: Path = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # told to end, it ends its forks as with Ctrl-C
    try:
        with selectors.DefaultSelector() as selector:
            while waiting or running:
                while waiting and len(running) < most:
                    running.append(one := _start(session, waiting.pop(), base, [each.pipe for each in running], before))
                    selector.register(one.pipe, selectors.EVENT_READ, one)
                for key, _ in selector.select(0.5):
                    one = key.data
                    if not one.read():
                        selector.unregister(one.pipe)
                        running.remove(one)
                        _finish(one)
                        ended(one.job, one.told, one.why, time.monotonic() - one.begun)
                for one in running:
                    _hurry(one)
    finally:
        for one in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGTERM)
        for one in running:
            _finish(one, GRACE)
        signal.signal(signal.SIGTERM, before)


def _hurry(one: _Running) -> None:
    now = time.monotonic()
    if one.term is None and now - one.begun > one.job.seconds:
        one.term, one.why = now, f"it did not come to an end within {one.job.seconds:g} s"
        os.kill(one.pid, signal.SIGTERM)
    elif one.term is not None and now - one.term > GRACE:
        os.kill(one.pid, signal.SIGKILL)


def _finish(one: _Running, grace: float = 0.0) -> None:
    """Reap the fork, and remove what it leaves: processes only when it had to be killed, its folder always."""
    deadline = time.monotonic() + grace
    while os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT | (os.WNOHANG if grace else 0)) is None:
        if time.monotonic() > deadline:
            os.kill(one.pid, signal.SIGKILL)
            grace = 0.0
        time.sleep(0.02)
    status = os.waitstatus_to_exitcode(os.waitpid(one.pid, 0)[1])
    os.close(one.pipe)
    if status and one.why is None:
        one.why = f"its run ended by signal {-status}" if status < 0 else f"its run failed (status {status})"
    if status == -signal.SIGKILL:
        _end_strays(one.folder)
    shutil.rmtree(one.folder, ignore_errors=True)


def _end_strays(folder: Path) -> None:
    """End the processes that know the folder by their environment or their command (where /proc shows them)."""
    wanted = os.fsencode(folder) + b"/"
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)


def _start(session: pytest.Session, job: Job, base: Path, pipes: list[int], on_term: Any) -> _Running:
    """Fork. The others' pipes are closed in it, so that every fork notices when its parent is gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    number = len(list(base.iterdir()))
    while (folder := base / f"job-{number}").exists():
        number += 1
    folder.mkdir()
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return _Running(job, pid, read, folder, time.monotonic())
    status = 1
    try:
        signal.signal(signal.SIGTERM, on_term)
        for pipe in (read, *pipes):
            os.close(pipe)
        _work(session, job, folder, write)
        status = 0
    except KeyboardInterrupt:
        status = 2
    except BaseException as error:  # of ours, or the parent is gone
        with contextlib.suppress(OSError):
            os.write(write, _line(Told("the run itself", job.name, job.profile, "crash", f"{type(error).__name__}: {error}")))
    finally:
        from codex_replay.shell.process.subject import stop_all

        stop_all()
        os._exit(status)


# -- in the fork -------------------------------------------------------------------------------------------------------------


def _work(session: pytest.Session, job: Job, folder: Path, pipe: int) -> None:
    """Run the job's cases and tell of each."""
    config: Any = session.config
    config._tmp_path_factory._basetemp = folder
    config.option.codex_replay_proxy = shlex.join(job.argv)
    if job.profile is not None:
        config.option.codex_replay_profile = job.profile
    read_settings(config)
    if (capture := config.pluginmanager.getplugin("capturemanager")) is not None:
        config.pluginmanager.unregister(capture)  # its files are shared with the other forks
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)

    def report_on(check: str, item: pytest.Item) -> str:
        outcome, why = _run(item, session, job)
        os.write(pipe, _line(Told(check, item.nodeid, job.profile, outcome, why)))
        return outcome

    try:
        worst = {_check(report_on, check, cases) for check, cases in job.checks}
        if worst <= {"green", "skipped"}:
            for check, cases in job.others:
                if _check(report_on, check, cases) in ("red", "crash"):
                    break
    except _Broken:
        pass
    finally:
        session._setupstate.teardown_exact(None)


def _line(told: Told) -> bytes:
    return json.dumps(told._replace(why=told.why[:300])).encode() + b"\n"


class _Broken(Exception):
    """The subject has broken down: nothing that it does from now on is evidence."""


def _check(report_on: Callable[[str, pytest.Item], str], check: str, cases: list[pytest.Item]) -> str:
    """Run the cases of a check up to the first red one; return the worst outcome."""
    worst = "skipped"
    for item in cases:
        outcome = report_on(check, item)
        if outcome == "crash":
            raise _Broken
        if outcome == "red":
            return outcome
        worst = "green" if outcome == "green" else worst
    return worst


def _run(item: pytest.Item, session: pytest.Session, job: Job) -> tuple[str, str]:
    """Run a case; what the session shares is kept for the next one."""
    from _pytest.runner import runtestprotocol

    reports = runtestprotocol(item, log=False, nextitem=session)  # type: ignore[arg-type]
    proxy = item.stash.get(PROXY, None)
    if proxy is not None and proxy.running is not None and list(proxy.running.subject.argv[1:]) != job.argv[1:]:
        return "crash", f"another program was asked: {shlex.join(proxy.running.subject.argv)}"
    for report in reports:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = str(crash.message if crash is not None else report.longrepr)
            broken = _broken(proxy)
            return ("crash", broken) if broken else ("red", why)
    if any(report.skipped for report in reports):
        return "skipped", ""
    return "green", ""


def _broken(proxy: Any) -> str:
    """How the subject broke down; empty when it stands and has only answered wrongly."""
    if proxy is None or proxy.running is None or proxy.running.process is None:
        return "it did not start"
    process = proxy.running.process
    if process.exited.is_set() and not proxy.running.retired:
        return f"it has ended (status {process.status})"
    said = process.stderr_tail(1000)
    return f"it raised {said[-1]}" if any(line.startswith("Traceback") for line in said) else ""
