"""A small event loop: tasks, timers and sockets, with the names that they have in asyncio."""
