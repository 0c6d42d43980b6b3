"""The seams of the reference proxy: HTTP, SSE, JSON text, its app-server processes."""
