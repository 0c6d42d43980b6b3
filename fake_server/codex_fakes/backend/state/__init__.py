"""The data that the backend keeps between requests, as the real service does: responses and conversations."""
