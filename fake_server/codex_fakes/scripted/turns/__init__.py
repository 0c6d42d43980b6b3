"""The turns of the scripted fake, and the model's calls in these turns."""
