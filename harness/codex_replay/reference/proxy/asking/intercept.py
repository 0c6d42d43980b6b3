"""Answer an editor's background requests for a title or a summary of the chat, without starting a turn.

HAND-07 requires that a proxy answers background requests itself, but does not fix the answer. The reference proxy answers
with the first words of the chat.
"""

from __future__ import annotations

import re

from codex_replay.reference.proxy.asking.normalise import Asked

_ASK = r"^\W*(?:\[user\]\s*)?(?:please\s+|can you\s+|could you\s+)?"
_CHAT = r"\b(?:conversation|chat|discussion|thread|messages?|dialogue|session)\b"
TITLE = re.compile(
    _ASK + r"(?:generate|create|write|give|suggest|provide|come up with|make|return)\b[^\n]{0,80}\btitle\b[^\n]*?" + _CHAT, re.I
)
SUMMARY = re.compile(
    _ASK + r"(?:summari[sz]e\b|(?:generate|create|write|give|provide|make)\b[^\n]{0,60}\bsummary\b)[^\n]{0,80}?" + _CHAT, re.I
)
LABEL = re.compile(r"^\s*(?:\[?(?:user|assistant|human|ai)\]?\s*[:\]]?\s*)?", re.I)
WORDS = {"title": 5, "summary": 40}


def intercepted(asked: Asked) -> str | None:
    """Return the proxy's own answer to a request for a title or a summary.

    Return None for a request of another kind, and for a request with tools.
    """
    if asked.tools.definitions or asked.schema is not None or len(asked.items) != 1:
        return None
    message = asked.items[0].value
    if "\n[assistant]" in message:
        return None  # a user's own wish in the middle of a chat
    for kind, pattern in (("title", TITLE), ("summary", SUMMARY)):
        if pattern.search(message):
            return _first_words(message, WORDS[kind]) or {"title": "New chat", "summary": "Nothing was said yet."}[kind]
    return None


def _first_words(said: str, most: int) -> str:
    """Return the first words of the chat. The chat is the text after the first line of the message `said`."""
    about = said.partition("\n")[2].strip()
    words = [word for line in about.splitlines() for word in LABEL.sub("", line).split()]
    return " ".join(words[:most]).strip(" \"'.,:;")
