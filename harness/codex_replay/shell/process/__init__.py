"""Start processes: programs under test, and programs that take the place of another program."""
