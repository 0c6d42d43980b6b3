"""Read and write the formats of the wire: JSON text, JSON-RPC messages, NDJSON lines, server-sent events, WebSocket messages."""
