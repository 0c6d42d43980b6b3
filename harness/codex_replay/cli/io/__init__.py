"""What all verbs share with their user: sentences, tables, stdout, progress."""
