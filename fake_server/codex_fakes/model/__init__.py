"""What a scripted model says: shared by the scripted fake and the backend."""
