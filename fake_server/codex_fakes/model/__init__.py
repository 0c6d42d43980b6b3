"""The scripted model, shared by the scripted fake and the backend."""
