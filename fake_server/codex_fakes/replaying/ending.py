"""Report the result of a replay as one line of JSON in the file `FAKE_CODEX_ENDING`.

This module is loaded only if `FAKE_CODEX_ENDING` is set (see `fake_codex`).
"""

from __future__ import annotations

from posix import getpid

from codex_replay.core.wire.json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Note = tuple[int, str]


def append(
    path: str, cassette: str, left_out: Iterable[tuple[int, str, bool]], otherwise: Iterable[Note], unmatched: Iterable[str]
) -> None:
    """Append the result of the replay to the file at `path`, in one write.

    Raises `OSError` if the file cannot be written. `left_out` lists the recorded frames of the client that were not matched: the
    number, the method, and True if the client sent the message, but with another content or too early. `otherwise` lists the
    requests that were answered although their content differs from the recording: the number of the frame, and a sentence.
    `unmatched` has a sentence for each live frame that matches no recorded frame.
    """
    ending = {
        "pid": getpid(),
        "cassette": cassette,
        "left_out": [{"n": n, "message": message, "refused": refused} for n, message, refused in left_out],
        "otherwise": [{"n": n, "text": text} for n, text in otherwise],
        "unmatched": list(unmatched),
    }
    with open(path, "ab") as file:
        file.write(dumps(ending) + b"\n")
