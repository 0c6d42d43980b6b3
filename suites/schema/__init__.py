"""What the schema files that Codex generates of itself must say."""
