"""Collect the traces of cases: the messages of the program under test and of the harness, redacted and shortened for the report.

Each fixture for a program under test registers a function with its test (`TRACE_SOURCE`), so that `TraceCollector` does not
depend on the fixtures. At the end of the test, the registered function is called. Most registered functions only pass the
frames of their fixture to `TraceCollector.collect`. The trace of a passed case is shorter than that of a failed case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NotRequired, TypedDict

import pytest

from codex_replay.report.data import Frame

#: The limits of a trace of a passed case, and of a failed or live one: frames, and characters of one frame.
PASSED, FAILED = (80, 2048), (2000, 1 << 16)
#: Longer than any secret, in characters.
MARGIN = 1 << 15
#: How many names of frames are remembered.
_NAMES = 4096
_CUT = "[cut]"
_RUN = r"[^\s'\"`\\<>,;(){}\[\]]"
#: What keys begin with: enough to know one by, however little is left of it.
_BEGUN = r"(?<![A-Za-z0-9])(?:sk-|sess-|gh[opsu]_|github_pat_|glpat-|xox[abp]-|eyJ|AKIA)"
_WORD = re.compile(rf"{_RUN}+")
#: How much of the two ends of a word is looked at: more than any part that pytest leaves.
_ENDS = 512
#: After an ellipsis, pytest may have left the end of the secret's name, too.
_END_OF_NAME = 16
#: The beginning of a key, or letters of both cases with digits, or many hexadecimal digits, or an address.
_OPAQUE = re.compile(
    rf"{_BEGUN}|"
    r"(?=[^\s]*[A-Z])(?=[^\s]*[a-z])(?=[^\s]*[0-9])[A-Za-z0-9_+=%~/!#^*?&-]{8,}|(?=[0-9a-f-]*[0-9])[0-9a-f-]{16,}|[\w.%+-]+@[\w.-]"
)


def without_torn(text: str) -> str:
    """Return a truncated text without words that may be a part of a secret, because truncation can cut a secret in two.

    The redactor recognises a whole token by its form or its name, but not half a token. A word with an ellipsis, or the
    word after an ellipsis, is removed if it looks like part of a token.
    """
    if "..." not in text:
        return text
    pieces: list[str] = []
    at, torn = 0, -1
    for found in _WORD.finditer(text):
        word, start = found[0], found.start()
        after = torn >= 0 and text[torn:start] in (" ", "  ")
        ellipsis = word.rfind("...")
        torn = found.end() if ellipsis >= 0 and len(word) - ellipsis <= _END_OF_NAME else -1
        if (ellipsis >= 0 or after) and (_OPAQUE.search(word[:_ENDS]) or _OPAQUE.search(word[-_ENDS:])):
            pieces += (text[at:start], _CUT)
            at = found.end()
    return "".join((*pieces, text[at:]))


class CollectedTrace(TypedDict):
    """The trace of a case, without the name of the case.

    `expected` and `actual` are the two values of the smallest difference between the case and its recording, as text.
    """

    source: str
    cassette: str | None
    truncated: bool
    frames: list[Frame]
    expected: NotRequired[str | None]
    actual: NotRequired[str | None]


def new_trace(frames: list[Frame], *, truncated: bool = False) -> CollectedTrace:
    """Return the trace of a case of this run."""
    return {"source": "this run", "cassette": None, "truncated": truncated, "frames": frames}


class TraceCollector:
    """Redact and shorten the traces of one process; one redactor serves all cases of the process."""

    def __init__(self, paths: dict[str, str] | None = None) -> None:
        from codex_replay.core.redact.redactor import Redactor  # not needed by a run without traces

        self._redactor = Redactor(paths=paths)
        self._named: dict[str, str] = {}

    def clean(self, text: str) -> str:
        """Return the text of a failure without secrets, and without parts of secrets that were cut in two."""
        return without_torn(self._redactor.text(text))

    def collect(self, frames: Iterator[Frame], passed: bool) -> CollectedTrace | None:
        """Return the redacted trace that consists of the given frames, or None if there are no frames.

        The trace of a passed case has fewer and shorter frames than the trace of a failed case.
        """
        most, longest = PASSED if passed else FAILED
        seen = list(islice(frames, most + 1))
        kept = [self._clean(frame, n, longest) for n, frame in enumerate(seen, 1)]
        return new_trace(kept, truncated=len(seen) > most) if kept else None

    def _clean(self, frame: Frame, n: int, longest: int) -> Frame:
        text, whole = self._beginning(frame["text"], longest)
        frame["n"], frame["what"], frame["text"] = n, self._name(frame["what"]), text[:longest]
        if whole > longest:
            frame["cut"] = whole
        return frame

    def _name(self, what: str) -> str:
        """Return the name of a frame without secrets. The results are cached, because most names repeat."""
        name = self._named.get(what)
        if name is None:
            if len(self._named) >= _NAMES:
                self._named.clear()
            name = self._named[what] = self._redactor.text(what)[:300]
        return name

    def _beginning(self, text: str, longest: int) -> tuple[str, int]:
        """Return the redacted beginning of a long text (`longest` characters or more), and the length of the whole text.

        The redactor may miss a secret that is cut in two. To be safe, the function redacts more text than it returns, and
        does not return the text near the cut.
        """
        if len(text) <= longest + 2 * MARGIN:
            text = self._redactor.text(text)
            return text, len(text)
        begun = self._redactor.text(text[: longest + 2 * MARGIN])
        return begun[: max(0, len(begun) - MARGIN)], len(text)


#: Return the redacted trace of a test, None if there is none, given whether the test passed.
TraceSource = Callable[[TraceCollector, bool], CollectedTrace | None]
#: Under which key a test has its source.
TRACE_SOURCE = pytest.StashKey[TraceSource]()


def trace_frames_of(item: Any, frames: Callable[[], Iterator[Frame]]) -> None:
    """Register a function that returns the unredacted frames of a test, from which the trace is made."""
    item.stash[TRACE_SOURCE] = lambda collector, passed: collector.collect(frames(), passed)
