"""Notes for the user about requests that were answered although they differ from the recorded requests.

At the match level `method`, the content of a request may differ from the recorded request. Differences in content are
reported in a few lines when fake-codex ends, and do not change the exit status. fake-codex loads the module only if there
may be differences, because the import takes time.
"""

from __future__ import annotations

from codex_replay.core.replay.match import first_few
from codex_replay.core.text.escape import escape
from codex_replay.core.text.truncate import excerpts
from codex_replay.core.wire.jsonrpc import label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from codex_replay.core.cassette.frames import Frame
    from codex_replay.core.replay.match import Difference, Matcher

TOLD = 5  # lines, one per request
SHOWN = 80  # characters of a value
_BEFORE = 20  # of them, before the place where two long values part


def content_notes(
    pairs: list[tuple[Frame, Frame]], matcher: Matcher, clean: Callable[[Frame], Frame], cassette: str
) -> list[tuple[int, str]]:
    """For each live request that differs from the recorded request, return the number of the recorded frame and a sentence.

    `pairs` has each recorded request with the live request that it matched. The function `clean` redacts live values in the same
    way as the recording. Masked values, values that the client chooses (such as ids) and `clientInfo` are not compared.
    """
    found = []
    for recorded, live in pairs:
        differences = _differences(matcher, recorded, live) and _differences(matcher, recorded, clean(live))
        if differences:
            sentence = (
                f"{escape(label(live.value))} was answered like frame {recorded.n} of {cassette}, although it differs at "
                f"{first_few([_sentence(found) for found in differences])}"
            )
            found.append((recorded.n, sentence))
    return found


def summary(notes: list[tuple[int, str]], cut: bool) -> list[str]:
    """Return a line for each of the first notes (at most `TOLD`), and a line with the number of all notes.

    `cut` is True if there may be more notes than those in `notes`.
    """
    if not notes:
        return []
    count = len(notes)
    least = "at least " if cut else ""
    rest = f", {count - TOLD} of them not listed" if count > TOLD else ""
    counted = (
        f"{least}{count} request{'s' if count > 1 else ''} of the client differ{'s' if count == 1 else ''} from the "
        f"recording{rest}. FAKE_CODEX_MATCH=exact refuses such a request; FAKE_CODEX_MATCH=method allows it without a note"
    )
    return [f"note: {text}" for text in (*(text for _, text in notes[:TOLD]), counted)]


def _differences(matcher: Matcher, recorded: Frame, live: Frame) -> list[Difference]:
    return [found for found in matcher.differences(recorded.value, live.value) if not found.path.startswith("params.clientInfo")]


def _sentence(difference: Difference) -> str:
    ours, theirs = (escape(text) for text in excerpts((difference.recorded, difference.live), SHOWN, _BEFORE))
    return f"{escape(difference.path[:SHOWN])}: recorded {ours}, got {theirs}"
