"""Answer requests from recordings: find the recorded exchange for a request, and send its answer."""
