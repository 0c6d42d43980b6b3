"""JSON Schemas as shapes, and the differences between two shapes."""
