"""Compare recordings with each other, and list the effects that replaying a recording may have on a machine."""
