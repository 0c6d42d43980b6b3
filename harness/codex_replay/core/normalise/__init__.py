"""What two runs of one scenario may differ in: masked values, bound ids, declared races."""
