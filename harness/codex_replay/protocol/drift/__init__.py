"""What changed between two schema bundles, and which clients it breaks."""
