"""Convert JSON Schemas to shapes (a normal form), and find the differences between two shapes."""
