"""The lite client as a subject."""
