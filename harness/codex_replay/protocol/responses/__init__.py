"""Build the event stream of a Responses backend from items, and check the events of a stream."""
