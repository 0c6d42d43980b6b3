"""Remove the allowed differences between two runs of a scenario: values that change, ids, and declared races."""
