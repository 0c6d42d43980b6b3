"""The seam `http`: its recorder, its player, and the fake backend as a process."""
