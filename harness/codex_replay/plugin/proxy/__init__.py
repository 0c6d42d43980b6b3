"""The proxy as a subject."""
