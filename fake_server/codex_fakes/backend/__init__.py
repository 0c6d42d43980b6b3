"""The fake Responses backend."""
