"""Compare recordings with each other, and list the effects of a recording on a live machine."""
