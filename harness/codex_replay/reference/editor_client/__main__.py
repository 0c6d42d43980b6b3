"""Run the editor client: `python -m codex_replay.reference.editor_client CODEX`.

docs/editor-client.md describes the input and output of the client.
"""

from __future__ import annotations

import os
import select
import sys

from codex_replay.reference.editor_client.session import DECISIONS, Session
from codex_replay.reference.json_text import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class NoCommand(ValueError):
    """A line of the driver is not a command that docs/editor-client.md lists."""


def report(what: str, **fields: Any) -> None:
    """Send the driver a report of a text that an editor would show."""
    os.write(1, dumps({"report": what, **fields}).encode() + b"\n")


def obey(session: Session, line: bytes) -> bool:
    """Execute a line of the driver; return False after the last line. Raises `NoCommand` for an unknown command."""
    try:
        command = loads(line) if line.strip() else {"do": "nothing"}
        what = command["do"]
        text, approval, decision = str(command.get("text")), command.get("id"), command.get("decision")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NoCommand(line[:200].decode("utf-8", "replace")) from None
    if what == "prompt":
        session.prompt(text)
    elif what == "decide" and decision in DECISIONS:
        session.decide(approval, decision)
    elif what == "interrupt":
        session.interrupt()
    elif what not in ("shutdown", "nothing"):
        raise NoCommand(line[:200].decode("utf-8", "replace"))
    return bool(what != "shutdown")


def run(session: Session) -> None:
    """Process the lines of the driver and of the server until the driver sends shutdown or closes the client's stdin."""
    rest = b""
    while True:
        inputs: list[Any] = [0] if session.connection is None else [0, session.connection]
        ready = select.select(inputs, [], [])[0]
        if 0 in ready:
            data = os.read(0, 1 << 16)
            *lines, rest = (rest + data).split(b"\n")
            if not data or not all(obey(session, line) for line in lines):
                return
        elif ready:
            session.receive()


def main(argv: list[str]) -> int:
    """Run the editor until the driver ends it; return the exit status."""
    if len(argv) != 1:
        sys.stderr.write("Give the codex to start: python -m codex_replay.reference.editor_client CODEX\n")
        return 2
    session = Session(argv[0], report)
    try:
        run(session)
    except (BrokenPipeError, KeyboardInterrupt):
        return 1
    except NoCommand as command:
        sys.stderr.write(f"The driver sent a command that docs/editor-client.md does not define: {command}\n")
        return 2
    finally:
        session.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
