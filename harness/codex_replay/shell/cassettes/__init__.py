"""Read, write, check, count, rewrite and import cassette files."""
