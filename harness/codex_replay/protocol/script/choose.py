"""Choose the turn of a script that answers a request, and count the uses of each turn.

Both the fake backend and the fake Codex use this module.

A turn with a matching `match` is preferred to a turn without `match`. Among several equally good turns, the first unused turn is
chosen (docs/scripts.md).

A script may have turns for a thousand cases, each with its own marker (a unique word in the prompt). To be fast, each text
of a request is searched once for all markers, and not once for each turn. The markers found in a text are cached, because
most texts of a request (instructions, permissions) are repeated in the next request. The code here is pure: it uses no
files, sockets or clocks.
"""

from __future__ import annotations

from codex_replay.protocol.script.expect import captured, continued, input_texts, markers_of, mismatch, pattern_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from codex_replay.protocol.script.script import Turn

_TOLD = 3  # refusals in the sentence of a miss
_TEXTS = 64  # texts that are remembered; then all are forgotten


class Choice:
    """The turns of one script, and how often each was used."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns
        self._used: dict[int, int] = {}
        self._wanted = [markers_of(turn.match) for turn in turns]
        self._markers = {marker for wanted in self._wanted for marker in wanted}
        self._found: dict[str, frozenset[str]] = {}

    def choose(
        self,
        body: Mapping[str, Any],
        headers: Sequence[tuple[str, str]] | None,
        earlier: Sequence[Mapping[str, Any]] = (),
    ) -> tuple[int, Turn, str] | str:
        """Choose the turn that answers a request, and count its use.

        Return the index of the turn, the turn, and the label for its ids. If no turn matches, return a sentence with the reason.

        `headers` is None if the request has no headers, because it comes from the same process. `earlier` has the earlier
        items of the conversation, if the request does not repeat them.
        """
        texts = list(input_texts(body))
        there = self._markers_in(texts)
        plain: int | None = None
        refusals: list[str] = []
        left = False
        for i, turn in enumerate(self._turns):
            if turn.times is not None and self._used.get(i, 0) >= turn.times:
                continue
            left = True
            if not turn.match:
                plain = i if plain is None else plain
            elif there.issuperset(self._wanted[i]) and mismatch(turn.match, body, headers, texts, earlier) is None:
                index, turn, label = self._use(i)
                return index, _filled(turn, continued(body, earlier)) if pattern_of(turn.match) else turn, label
            elif len(refusals) < _TOLD:
                refusals.append(f"turns[{i}]: {mismatch(turn.match, body, headers, texts, earlier)}")
        if plain is not None:
            return self._use(plain)
        if not left:
            return _used_up(len(self._turns))
        return "No turn of the script matches this request. " + " ".join(refusals)

    def _markers_in(self, texts: Sequence[str]) -> set[str]:
        """Return the markers of the script that occur in at least one of the given texts."""
        there: set[str] = set()
        for text in texts:
            found = self._found.get(text)
            if found is None:
                if len(self._found) >= _TEXTS:
                    self._found.clear()
                found = self._found[text] = frozenset(marker for marker in self._markers if marker in text)
            there |= found
        return there

    def _use(self, index: int) -> tuple[int, Turn, str]:
        use = self._used[index] = self._used.get(index, 0) + 1
        return index, self._turns[index], f"{index + 1}" if use == 1 else f"{index + 1}_{use}"

    @property
    def used(self) -> dict[int, int]:
        """Return how often each turn was used, by the index of the turn."""
        return dict(self._used)

    def go_on(self, used: Mapping[int, int]) -> None:
        """Restore a saved state: `used` has the number of uses of each turn."""
        self._used = dict(used)

    def unused(self) -> list[int]:
        """Return the indexes of the turns that no request has used; an "always" turn counts as used after its first use."""
        return [i for i, turn in enumerate(self._turns) if self._used.get(i, 0) < (turn.times or 1)]


def _filled(turn: Turn, body: Mapping[str, Any]) -> Turn:
    """In the turn's items, replace `${name}` and `${1}` by the groups that the turn's pattern captured.

    Other texts stay unchanged.
    """
    groups = {f"${{{name}}}": text for name, text in (captured(turn.match, body) or {}).items()}

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            if "${" in value:
                import re  # only for a group: it would cost every start of a script

                return re.sub(r"\$\{\w+\}", lambda found: groups.get(found[0], found[0]), value)
            return value
        if isinstance(value, dict):
            return {key: fill(each) for key, each in value.items()}
        return [fill(each) for each in value] if isinstance(value, list) else value

    return turn.but(items=tuple(fill(item) for item in turn.items))


def _used_up(turns: int) -> str:
    if not turns:
        return "The script has no turns: add one."
    message = "The only turn of the script is used" if turns == 1 else f"All {turns} turns of the script are used"
    return f"{message}: add a turn, or set `times` of the last turn."
