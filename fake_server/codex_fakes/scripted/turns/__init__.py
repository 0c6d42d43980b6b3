"""Turns of the scripted fake, and the calls of the model in them."""
