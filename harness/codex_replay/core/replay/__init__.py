"""Replay a recording: match the client's frames, find the causes of the server's frames, and choose among several recordings."""
