"""Input and output that all verbs share: error messages, tables, stdout, progress."""
