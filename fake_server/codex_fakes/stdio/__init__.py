"""The loop of the stdio servers, the capture of a client, and byte-level faults."""
