"""The seam `rpc`: a client that drives an app-server, the player, and the recorder."""
