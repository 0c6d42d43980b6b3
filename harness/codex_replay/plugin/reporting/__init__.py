"""What a run comes to: verdicts, traces, coverage, baseline, report. It knows no subject."""
