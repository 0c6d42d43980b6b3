"""The redactor: find secrets in texts and replace them by placeholders."""
