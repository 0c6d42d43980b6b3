"""The exit status of an interrupted command, valid even while the command is still loading."""

SENTENCE = "codex-replay: interrupted."
#: The status that shells give to an interrupted program; 1 would be a verdict.
STATUS = 130
