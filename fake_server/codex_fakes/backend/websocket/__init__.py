"""The WebSocket of the Responses backend: its handshake, its connections, and the answers to their messages."""
