"""The JSON-RPC methods of the scripted fake."""
