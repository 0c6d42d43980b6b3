"""What Codex says, pure: bundles, validators, the closed-world check, and the tables of each version."""
