"""The main loop of the stdio servers, the capture of a client's frames, and faults at the level of bytes."""
