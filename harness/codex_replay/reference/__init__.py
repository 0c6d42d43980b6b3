"""Small, correct clients and a proxy, against which the suites are tested.

Each runs as a program, and shares no code with the suite that tests it.
"""
