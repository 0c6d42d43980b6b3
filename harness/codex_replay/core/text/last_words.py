"""The line of a program's stderr that most likely names the error."""

from __future__ import annotations

from collections.abc import Sequence

from codex_replay.core.text.truncate import truncate

#: Characters of the line that are kept.
LONG = 200


def last_words(lines: Sequence[str]) -> str:
    """Return a text for the end of a sentence about a program that has ended: a line of its stderr, or that stderr is empty.

    The quoted line of stderr is the last one that is not indented and has a letter or digit. The last such line is the error of
    Python, which is below the traceback, and the error of Node.js, which is above the stack trace. The version that Node.js
    writes at the end of its stderr is left out.
    """
    kept = [line for line in lines if line.strip() and not line.startswith("Node.js v")]
    outer = [line for line in kept if not line[0].isspace() and any(map(str.isalnum, line))]
    if not kept:
        return "; its stderr is empty."
    return f": {truncate((outer or kept)[-1].strip(), LONG)}"
