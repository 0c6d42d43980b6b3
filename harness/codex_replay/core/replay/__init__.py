"""Replay: the matching of client frames, the causes of server frames, and the choice of a recording."""
