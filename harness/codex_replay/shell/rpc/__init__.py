"""The rpc seam: the client that drives an app-server, the player, and the recorder."""
