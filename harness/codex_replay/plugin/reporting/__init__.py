"""The results of a run: verdicts, traces, coverage, baseline, report. This package is independent of the subject."""
