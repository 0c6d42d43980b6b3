"""The editor client as a subject."""
