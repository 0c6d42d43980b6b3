"""Install the real Codex from the npm registry, and create a hermetic home in which it runs."""
