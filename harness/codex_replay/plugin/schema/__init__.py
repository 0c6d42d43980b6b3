"""The schema files as a subject."""
