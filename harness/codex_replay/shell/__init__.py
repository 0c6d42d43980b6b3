"""Code with side effects: cassette files, processes, recorders, clients, the real Codex.

The package `core` makes all decisions; the code here only reads and writes bytes.
"""
