"""The one redactor: what is a secret, where it is, and what replaces it."""
