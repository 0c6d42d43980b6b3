"""Frames held to a schema bundle: valid (the JSON Schema holds) and known (no other key)."""
