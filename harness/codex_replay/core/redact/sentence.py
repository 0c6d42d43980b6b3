"""Remove secrets and control characters from a sentence for a person.

codex-replay and its fakes pass every message for stderr through this module.
"""

from __future__ import annotations

from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.text.visible import visible

_LINE = 4096  # bytes of a line that are looked at before it is cut


def sentence(text: str) -> str:
    """Return a sentence without secrets and control characters.

    The user's home directory is not removed, so that the user finds a file that the sentence names.
    """
    return visible(Redactor(homes=False).text(text))


def shown_line(line: bytes) -> str:
    """Return the beginning of a received line for an error message: at most 200 bytes, in quotes, without secrets."""
    return repr(Redactor().redact(line[:_LINE])[:200])
