"""The scripted model, which the scripted fake and the fake backend share."""
