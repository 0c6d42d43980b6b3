"""The fixtures of the schema suite come from the plugin `codex_replay.suites`."""

from __future__ import annotations

from codex_replay.plugin.schema.fixtures import bundle_files, cassette_frames, pytest_generate_tests

__all__ = ["bundle_files", "cassette_frames", "pytest_generate_tests"]
