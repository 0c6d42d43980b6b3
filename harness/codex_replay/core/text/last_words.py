"""The line of a program's stderr that most likely names the error."""

from __future__ import annotations

from collections.abc import Sequence

from codex_replay.core.text.truncate import truncate

#: Characters of the line that are kept.
LONG = 200


def last_words(lines: Sequence[str]) -> str:
    """Return the end of a sentence about a program that ended: the line after ": ", or the statement that stderr is empty.

    The result is the last line that is not indented and has a letter or digit. Python writes the error below its traceback.
    Node.js writes the error above its traceback, and then a closing brace and its version.
    """
    kept = [line for line in lines if line.strip() and not line.startswith("Node.js v")]
    outer = [line for line in kept if not line[0].isspace() and any(map(str.isalnum, line))]
    if not kept:
        return "; its stderr is empty."
    return f": {truncate((outer or kept)[-1].strip(), LONG)}"
