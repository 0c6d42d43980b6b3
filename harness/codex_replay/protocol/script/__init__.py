"""The script of a fake model: its keys, its turns, and which turn answers a request."""
