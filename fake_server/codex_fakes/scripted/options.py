"""Options of the command line that the real 0.92.0 refuses: --listen, and features that it does not know."""

from __future__ import annotations

from codex_replay.protocol.turn.frames import load_table

_LISTEN = (
    "error: unexpected argument '--listen' found\n\nUsage: codex app-server [OPTIONS] [COMMAND]\n\n"
    "For more information, try '--help'.\n"
)


def refused(options: list[tuple[str, str]]) -> tuple[str, int]:
    """Return the real server's message and exit status for the first bad option; the message is empty if all are good."""
    if any(name == "--listen" for name, _ in options):
        return _LISTEN, 2
    settings = load_table()["settings"]
    known = {*settings["features"]["stable"], *settings["features"]["on"], *settings["unstable"]}
    unknown = next((value for _, value in options if value not in known), None)
    return (f"Error: Unknown feature flag: {unknown}\n", 1) if unknown is not None else ("", 0)
