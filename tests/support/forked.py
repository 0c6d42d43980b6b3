"""Run a program that is loaded already, in a fork of this process: many times faster than to start it."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from execnet import gateway_base, gateway_io


def fork(main: Callable[[], int], env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[bytes]:
    """Run `main` in a fork, in a session of its own; what it returns is the exit status.

    `env` replaces the environment. The options are those of `subprocess.Popen` about pipes, the session and the working
    directory.
    """

    def child() -> None:
        # Popen calls this where it would start a program: the pipes are in place, and nothing of this process may go on.
        status = 1
        try:
            os.closerange(3, 4096)  # with them the pipe on which Popen waits for the start
            gc.freeze()  # nothing of this process is freed here: to walk through it would copy its memory
            gc.enable()
            sys.stdin, sys.stdout, sys.stderr = (open(fd, mode, closefd=False) for fd, mode in enumerate("rww"))  # noqa: SIM115
            if env is not None:
                os.environ.clear()
                os.environ.update(env)
            status = main()
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(status)

    # A started Python ignores SIGPIPE; Popen would give the child the default, which ends it.
    options.setdefault("start_new_session", True)
    return subprocess.Popen([sys.executable], preexec_fn=child, restore_signals=False, **options)


def fork_xdist_workers(options: Sequence[str]) -> None:
    """Fork the workers that these options of pytest ask for; pytest-xdist takes them in place of a new Python for each.

    Call it before pytest starts: a worker then has what is loaded, and no state of the run. A worker that takes the place of
    one that died is a new Python.
    """
    given = [value for name, value in pairwise(options) if name == "-n"]
    count = int(given[-1]) if given else 0
    waiting = [fork(_serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=False) for _ in range(count)]

    class ForkedWorker(gateway_io.Popen2IOMaster):
        """The pipes of a worker that was forked, and of a new Python if all have been taken."""

        def __init__(self, args: Any, execmodel: Any) -> None:
            if waiting:
                self.popen = waiting.pop()
                gateway_base.Popen2IO.__init__(self, self.popen.stdin, self.popen.stdout, execmodel=execmodel)
            else:
                super().__init__(args, execmodel)

    gateway_io.Popen2IOMaster = ForkedWorker  # type: ignore[misc]


def _serve() -> int:
    """Do what execnet has a new Python do; without a line, the run that forked this process has no use for it."""
    line = sys.stdin.readline()
    if line:
        exec(eval(line), {"__name__": "__main__"})
    return 0
