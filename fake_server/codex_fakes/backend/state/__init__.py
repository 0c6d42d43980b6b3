"""Data that the documented service keeps between requests: responses and conversations."""
