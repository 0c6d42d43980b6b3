"""From app-server events to the response for the client."""
