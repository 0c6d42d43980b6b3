"""The rules for requests to the backend."""
