"""The one redactor: what is a secret, where it stands, and what replaces it."""
