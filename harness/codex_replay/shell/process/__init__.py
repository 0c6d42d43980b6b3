"""Processes: programs under test, and programs that replace another program."""
