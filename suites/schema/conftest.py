"""The fixtures of this suite are the plugin's."""

from __future__ import annotations

from harness.plugin.schema_fixtures import _schema_case, bundle_files, cassette_frames, pytest_generate_tests

__all__ = ["_schema_case", "bundle_files", "cassette_frames", "pytest_generate_tests"]
