"""codex-replay: record what Codex really says, replay it byte for byte, and check who still speaks the protocol."""
