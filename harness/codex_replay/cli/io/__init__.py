"""Functions that all verbs use for output: sentences, tables, stdout, progress."""
