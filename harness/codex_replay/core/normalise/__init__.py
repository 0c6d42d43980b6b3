"""Remove the allowed differences between two runs of a scenario: masked values, bound ids, declared races."""
