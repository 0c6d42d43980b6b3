"""Side-by-side benchmarks: every figure is a ratio of two things measured alternately, or a count that time does not bend."""
