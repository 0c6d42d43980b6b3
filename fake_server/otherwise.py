"""What a client said otherwise than it was recorded and was answered all the same, in words for the person who runs it.

At the level `method` a request need not be the recorded one. Which ones were not is told at the end of the run, in few lines and
without a change of the exit status. Loaded only where something may have differed: not on fake-codex's start-up path.
"""

from __future__ import annotations

from harness.core.brief import excerpts
from harness.core.jsonrpc import label
from harness.core.visible import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.core.frames import Frame
    from harness.core.match import Difference, Matcher

TOLD = 5  # lines, each of one request
SHOWN = 80  # characters of a value
_BEFORE = 20  # of them, before the place where two long values part


def notes(
    pairs: list[tuple[Frame, Frame]], matcher: Matcher, clean: Callable[[Frame], Frame], cassette: str, most: int
) -> list[str]:
    """Return a sentence for each live request that is not the recorded one, up to `TOLD`, and one that counts them all.

    `pairs` are recorded and live requests, of which no more than `most` were kept; `clean` redacts, as recordings are. What is
    masked or bound does not differ, and `clientInfo` is every client's own.
    """
    lines: list[str] = []
    count = 0
    for recorded, live in pairs:
        found = _differences(matcher, recorded, live) and _differences(matcher, recorded, clean(live))
        if not found:
            continue
        count += 1
        if count <= TOLD:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            lines.append(
                f"note: {visible(label(live.value))} was answered as frame {recorded.n} of {cassette}, though it differs at "
                f"{_told(found[0])}{more}"
            )
    if count:
        least = "at least " if len(pairs) == most else ""
        rest = f", {count - TOLD} of them not told here" if count > TOLD else ""
        lines.append(
            f"note: {least}{count} request{'s' if count > 1 else ''} of the client differ{'s' if count == 1 else ''} from the "
            f"recording{rest}. FAKE_CODEX_MATCH=exact refuses such a request; FAKE_CODEX_MATCH=method allows it without a note"
        )
    return lines


def _differences(matcher: Matcher, recorded: Frame, live: Frame) -> list[Difference]:
    return [found for found in matcher.differences(recorded.value, live.value) if not found.path.startswith("params.clientInfo")]


def _told(difference: Difference) -> str:
    ours, theirs = (visible(text) for text in excerpts((difference.recorded, difference.live), SHOWN, _BEFORE))
    return f"{visible(difference.path[:SHOWN])}: recorded {ours}, got {theirs}"
