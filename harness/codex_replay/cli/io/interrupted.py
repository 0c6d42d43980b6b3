"""Set the exit status of an interrupted command, even while the modules of the command are still loading."""

SENTENCE = "codex-replay: interrupted."
#: The status that shells give to an interrupted program; 1 would be a verdict.
STATUS = 130
