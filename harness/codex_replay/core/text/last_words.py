"""The line of a program's stderr that most likely names the error."""

from __future__ import annotations

from collections.abc import Sequence

from codex_replay.core.text.truncate import truncate

#: Characters of the line that are kept.
LONG = 200


def last_words(lines: Sequence[str]) -> str:
    """Return the reason that a program gave for its end: the last meaningful line of its stderr, or a note that stderr is empty.

    A line is meaningful if it is not indented and has a letter or digit. In Python, the meaningful line is the error below
    the traceback; in Node.js, it is the error above the stack trace. The version that Node.js prints last is ignored.
    """
    kept = [line for line in lines if line.strip() and not line.startswith("Node.js v")]
    outer = [line for line in kept if not line[0].isspace() and any(map(str.isalnum, line))]
    if not kept:
        return "; its stderr is empty."
    return f": {truncate((outer or kept)[-1].strip(), LONG)}"
