"""The redactor: finds secrets and replaces them."""
