"""The lines of a cassette and the payloads of its frames."""
