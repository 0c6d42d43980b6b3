"""The methods of the scripted fake."""
