"""Small correct clients and servers to test with; each runs as a program and shares no code with its tests."""
