"""What an interrupted command ends with, whether it has begun or still loads."""

SENTENCE = "codex-replay: interrupted."
#: The status that shells give to an interrupted program; 1 would be a verdict.
STATUS = 130
