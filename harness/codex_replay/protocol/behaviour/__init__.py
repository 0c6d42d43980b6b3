"""What two Codex versions do differently, computed from the same cases run on both."""
