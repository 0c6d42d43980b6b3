"""Recordings compared with each other, and what a recording would do to a live machine."""
