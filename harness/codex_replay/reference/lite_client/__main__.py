"""Run the reference lite client with the prompt in argv.

Print the model's last text on stdout. After an error, print the error message on stderr and exit with status 1.
"""

from __future__ import annotations

import os
import sys

from codex_replay.reference.lite_client.auth import Auth
from codex_replay.reference.lite_client.client import Client
from codex_replay.reference.lite_client.errors import Problem
from codex_replay.reference.lite_client.settings import from_env
from codex_replay.reference.lite_client.tools import Tools


def main(argv: list[str]) -> int:
    """Answer one prompt; return the exit status."""
    if len(argv) != 1:
        sys.stderr.write('Give one prompt: python -m codex_replay.reference.lite_client "What is 2 + 3?"\n')
        return 2
    try:
        text = answer(argv[0])
    except Problem as problem:
        return fail(problem)
    sys.stdout.buffer.write(text.encode() + b"\n")
    return 0


def answer(prompt: str) -> str:
    """Return the answer to a prompt; raises `Problem` if there is no answer."""
    settings = from_env(os.environ)
    return Client(settings, Auth(settings.auth_file), Tools(settings.tools_file)).run(prompt)


def fail(problem: Problem) -> int:
    """Print an error."""
    sys.stderr.buffer.write(f"{problem}\n".encode("utf-8", "replace"))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
