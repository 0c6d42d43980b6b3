"""Write messages of the backend to stderr.

Each message is one line without secrets and control characters. After a number of messages, no more are written.
"""

from __future__ import annotations

import sys

from codex_replay.core.text.truncate import shortened

#: The maximum number of lines of one process: a client must not be able to fill a disk.
MOST = 200
_SHOWN = 1000  # characters of a line
_written = 0


def complain(text: str, *, foreign: bool = True) -> None:
    """Write one line to stderr. If `foreign`, the text may contain data of a client, and secrets in it are replaced."""
    global _written
    _written += 1
    if _written > MOST:
        return
    line = shortened(text, _SHOWN)
    if foreign:
        line = _redacted(line)
    line = line.replace("\n", "\\n")
    sys.stderr.write(line + "\n" + ("Further problems are not written here.\n" if _written == MOST else ""))
    sys.stderr.flush()


def _redacted(line: str) -> str:
    try:
        from codex_replay.core.redact.sentence import sentence  # only for those who complain: it would cost every start
    except OSError as error:  # too many open files
        return f"The backend has a problem, which is not described here, because the redactor cannot be loaded: {error.strerror}."
    return sentence(line)


def describe(error: BaseException) -> str:
    """Return the type of an exception and the place where it was raised: "KeyError('x') at routes.py:12"."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return repr(error)
    return f"{error!r} at {trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
