"""Read the script file of the scripted fake. fake-codex loads this module at start-up, if it has a script."""

from __future__ import annotations

from codex_replay.core.wire.json_text import NotJson, loads

LONGEST = 64 << 20  # bytes: a device goes on without end


def read_script(path: str) -> bytes:
    """Return the text of the script file, which is JSON.

    Raises `ValueError` with a sentence if the script file cannot be read or is not JSON.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(LONGEST + 1)
        if len(text) > LONGEST:
            raise ValueError(f"the script {path} is longer than {LONGEST >> 20} MB; check FAKE_CODEX_SCRIPT.")
        loads(text)
    except OSError as error:
        raise ValueError(f"the script {path} cannot be read ({error.strerror}); check FAKE_CODEX_SCRIPT.") from None
    except NotJson as error:
        raise ValueError(f"the script {path} is not JSON: {error}.") from None
    return text
