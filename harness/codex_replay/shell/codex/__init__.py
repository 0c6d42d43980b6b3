"""The real Codex: its binary from the npm registry, and a hermetic home to run it in."""
