"""The turns of the scripted fake, and the tool calls of the model in these turns."""
