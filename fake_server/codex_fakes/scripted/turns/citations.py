"""Remove citations of memories from messages, as Codex versions after 0.92 do, even if several deltas contain one citation."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Happening = tuple[str, dict[str, Any]]


class Citations:
    """Remove citations from the messages of the model.

    A `Citations` object stores the state of one message, so the messages must come one after another. `start` and `end` are the
    tags around a citation.
    """

    def __init__(self, start: str, end: str) -> None:
        self._tags = start, end
        self._inside = False
        self._kept = ""  # what may be the beginning of a tag

    def pass_on(self, happenings: list[Happening]) -> list[Happening]:
        """Return the events of messages without the citations.

        If a text may be the beginning of a tag, it is kept back until the next event.
        """
        passed: list[Happening] = []
        for name, values in happenings:
            if name == "agent-message-delta":
                if text := self._feed(values["delta"]):
                    passed.append((name, {**values, "delta": text}))
                continue
            if name == "agent-message-completed":
                if self._kept and not self._inside:
                    passed.append(("agent-message-delta", {"item": values["item"], "delta": self._kept}))
                self._kept, self._inside = "", False
                text = self._feed(values["text"]) + ("" if self._inside else self._kept)
                values = {**values, "text": text}
                self._kept, self._inside = "", False
            passed.append((name, values))
        return passed

    def _feed(self, text: str) -> str:
        rest, passed = self._kept + text, ""
        while True:
            before, tag, behind = rest.partition(self._tags[self._inside])
            if not tag:
                break
            passed += "" if self._inside else before
            rest, self._inside = behind, not self._inside
        tag = self._tags[self._inside]
        size = next((n for n in range(min(len(rest), len(tag) - 1), 0, -1) if rest.endswith(tag[:n])), 0)
        self._kept = rest[len(rest) - size :]
        return passed + ("" if self._inside else rest[: len(rest) - size])
