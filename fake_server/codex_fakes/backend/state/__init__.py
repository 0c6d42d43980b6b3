"""What the documented service keeps between requests: responses and conversations."""
