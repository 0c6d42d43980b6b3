"""Small, correct clients and a proxy, against which the suites are tested.

Each reference program shares no code with the suite that tests it.
"""
