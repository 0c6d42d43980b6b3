"""Convert the events of the app-server to the response for the client."""
