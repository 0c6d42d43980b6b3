"""The forms on the wire: JSON text, JSON-RPC messages, NDJSON lines, server-sent events."""
