"""Find the changes between two schema bundles, and the clients that each change breaks."""
