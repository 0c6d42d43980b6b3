"""Read the script of a fake model (keys, turns, expectations), and choose the turn that answers a request."""
