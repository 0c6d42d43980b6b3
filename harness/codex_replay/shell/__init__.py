"""The shell: cassette files, processes, recorder, clients, the real Codex.

This package transports bytes, and leaves all decisions to the core.
"""
