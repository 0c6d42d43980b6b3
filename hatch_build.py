"""Puts the suites and the cassettes into the wheel, where `codex-replay run` finds them outside a checkout.

They go inside the package, as harness/packaged/{suites,cassettes}, so that an installation adds no top-level package `suites` to
anyone's environment. An editable installation gets none: it has the checkout's own, and copies would only grow old.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PackagedSuites(BuildHookInterface):  # type: ignore[type-arg]
    """The build hook; hatchling finds it by this file's name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the two folders to a wheel (version "standard"), and to nothing else."""
        if self.target_name == "wheel" and version == "standard":
            for folder in ("suites", "cassettes"):
                build_data["force_include"][folder] = f"harness/packaged/{folder}"
