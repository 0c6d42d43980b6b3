"""The ways to choose a recorded exchange for a request (see `http_match`), in a module that a command line loads fast."""

WAYS = ("content", "connection", "conversation")
