"""What all tests share: how hypothesis works here.

Nothing asserts on wall time, so neither does hypothesis; in CI its examples are the same in every run, so that a red gate can be
repeated.
"""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("any machine"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CODEX_REPLAY_CI") else "any machine")

if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # Started by nohup: what the tests start would inherit that, and a signal that is ignored is rightly not passed on.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
