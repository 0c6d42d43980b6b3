"""The backend of these tests, or a broken one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from codex_replay.shell.http.backend_process import BackendProcess
from tests.fakes.backend.http_replay.exchange import BROKEN


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    broken = os.environ.get("BROKEN_REPLAY")  # see the test of the broken replays
    with BackendProcess(command=(sys.executable, str(BROKEN), broken) if broken else None) as process:
        yield process
