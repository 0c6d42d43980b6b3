"""The http seam: the recorder, the player, and the fake backend as a process."""
