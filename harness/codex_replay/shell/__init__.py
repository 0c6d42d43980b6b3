"""The shell: cassette files, processes, recorder, clients, the real Codex; it moves bytes and decides nothing."""
