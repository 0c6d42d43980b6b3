"""The exit status of an interrupted command, also while it still loads."""

SENTENCE = "codex-replay: interrupted."
#: The status that shells give to an interrupted program; 1 would be a verdict.
STATUS = 130
