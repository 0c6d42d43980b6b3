"""From a client request to the payloads for the app-server."""
