"""One turn of the scripted fake, and the calls of its model."""
