"""Small honest clients and servers to test with; each runs as a program and shares nothing with what judges it."""
