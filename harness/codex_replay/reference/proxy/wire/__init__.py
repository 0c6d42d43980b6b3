"""The inputs and outputs of the reference proxy: HTTP, SSE, JSON text, app-server processes."""
