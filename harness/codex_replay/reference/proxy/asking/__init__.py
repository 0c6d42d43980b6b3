"""Convert the request of a client to the payloads for the app-server."""
