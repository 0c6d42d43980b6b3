"""Processes: programs under test, and programs that stand in for another."""
