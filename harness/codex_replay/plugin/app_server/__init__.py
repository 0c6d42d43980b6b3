"""The app-server as a subject."""
