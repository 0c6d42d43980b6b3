"""Build the event stream of a Responses backend from items, and check such a stream."""
