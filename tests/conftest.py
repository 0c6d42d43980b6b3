"""What all tests share: how hypothesis works here.

Nothing asserts on wall time, so neither does hypothesis; in CI its examples are the same in every run, so that a red gate can be
repeated.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("any machine"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CODEX_REPLAY_CI") else "any machine")
