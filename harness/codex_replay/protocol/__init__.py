"""Knowledge of Codex as pure code: bundles, validators, the closed-world check, and the tables of each version."""
