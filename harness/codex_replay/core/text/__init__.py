"""Functions for the texts that people read: truncate, escape, form plurals, and describe errors and values."""
