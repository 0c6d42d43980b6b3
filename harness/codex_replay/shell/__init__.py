"""The code with side effects: cassette files, processes, recorders, clients, the real Codex.

This package reads and writes bytes; the package `core` makes all decisions.
"""
