"""Check frames with a schema bundle.

A frame must be valid (its JSON Schema matches) and known (it has only keys that the schema bundle has).
"""
