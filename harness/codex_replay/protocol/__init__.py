"""Knowledge of Codex as pure code: bundles, validators, the check for unknown members, and the tables of each version."""
