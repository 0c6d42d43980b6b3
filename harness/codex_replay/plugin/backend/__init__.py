"""The Responses backend as a subject."""
