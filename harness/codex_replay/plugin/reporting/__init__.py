"""The results of a run: verdicts, traces, coverage, baseline, report.

This package does not depend on the kind of program under test.
"""
