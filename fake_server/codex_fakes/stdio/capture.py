"""Write the frames of the client to the cassette `FAKE_CODEX_CAPTURE`.

The module is loaded only if `FAKE_CODEX_CAPTURE` is set (see `fake_codex`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from codex_fakes.stdio.loop import write_out
from codex_replay.core.cassette.frames import Header
from codex_replay.core.redact.redactor import Redactor
from codex_replay.protocol.data_tables import identity
from codex_replay.shell.cassettes.file import CassetteWriter


def open_capture(path: str, codex: str, bundle: str = "", replayed: Iterable[str] = ()) -> CassetteWriter:
    """Create the file for the client's messages. `{pid}` in the file name is replaced by the process id.

    If the file exists, it stays unchanged: the new file gets a number (sent.2.ndjson), and a sentence on stderr reports its
    name. If `bundle` is empty, the bundle of the Codex version is used. Raises `ValueError` if the file is one of the
    cassettes in `replayed`, because the capture would overwrite the cassette.
    """
    path = path.replace("{pid}", str(os.getpid()))
    if os.path.exists(path) and any(os.path.samefile(path, cassette) for cassette in replayed):
        raise ValueError(f"FAKE_CODEX_CAPTURE is {path}, the cassette that is replayed; choose another file.")
    header = Header(codex, bundle or identity(codex), "capture", {"rpc.client": "recorded"})
    writer = CassetteWriter.claimed(path, header, Redactor(paths=paths(os.environ.get("HOME", ""))))
    if writer.path != path:
        write_out(
            f"fake-codex: {path} already exists and was not changed; this capture is {writer.path} (or put {{pid}} in the name)."
        )
    return writer


def paths(home: str) -> dict[str, str]:
    """Return the replacement of the user's home directory, for a redactor.

    The directory `/`, which is the home in many containers, is not replaced.
    """
    home = home.rstrip("/")
    return {home: "/home/user"} if home.startswith("/") else {}


def redactor(home: str) -> Redactor:
    """Return a redactor for live lines, so that they can be compared with a redacted recording.

    If the path of the home directory cannot be replaced, it stays unredacted.
    """
    try:
        return Redactor(paths=paths(home))
    except ValueError:
        return Redactor()
