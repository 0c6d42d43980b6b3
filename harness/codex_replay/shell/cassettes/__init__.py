"""Cassette files: read, written, checked, counted, rewritten, imported."""
