"""Test the JSON schema files that a server generates: fixtures for the schema suite."""
