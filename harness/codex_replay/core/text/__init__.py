"""Text for people: truncated, escaped, counted, and errors and durations in words."""
