"""Recordings as answers: which recorded exchange answers a request, and how its answer is sent."""
