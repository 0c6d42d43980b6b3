"""The results of a run: verdicts, traces, coverage, baseline, report. Independent of the subject."""
