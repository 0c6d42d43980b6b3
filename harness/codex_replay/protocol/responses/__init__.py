"""The event stream of a Responses backend: built from items, and checked."""
