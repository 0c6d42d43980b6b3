"""`fake-codex app-server --listen`: the app-server over WebSocket."""
