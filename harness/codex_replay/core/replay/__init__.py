"""Replay: which client frame matches, what each server frame waits for, and which recording answers."""
