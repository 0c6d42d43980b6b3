"""Facts about the Codex protocol, without access to files or sockets: the JSON schemas and tables of each version, and the code
that checks frames.
"""
