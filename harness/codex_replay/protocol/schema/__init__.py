"""Check frames with a schema bundle: valid (the JSON Schema matches) and known (no other key)."""
