"""Try a lite client: run the client once against the fake backend, and note its behaviour."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from codex_replay.plugin.lite_client.fixture import LiteClient, parse_lite_client
from codex_replay.shell.http.backend_process import BackendProcess
from codex_replay.shell.rpc.client import SubjectFailure

ANSWER = "Hello from the model."
DOCUMENT = "docs/lite-client.md has the variables and the output of a lite client."


@dataclass(frozen=True, slots=True)
class FoundLite:
    """The behaviour of a lite client in a trial: its requests in the form "POST /path 200", and the `seconds` of the run.

    `wrong` is a sentence about the failure if the client failed in the trial.
    """

    requests: tuple[str, ...] = ()
    seconds: float = 0.0
    wrong: str = ""


def try_lite(command: str, folder: str, wait: float) -> FoundLite:
    """Run the client on one prompt in `folder`, at most `wait` seconds. Raises `pytest.UsageError` if the command is invalid."""
    argv = parse_lite_client(command)
    with BackendProcess() as process, tempfile.TemporaryDirectory(prefix="codex-replay-init-") as made:
        client = LiteClient(argv, Path(folder), Path(made), process.session("init", {"turns": []}), wait)
        begun = time.monotonic()
        try:
            run = client("Hello", script=[{"items": [ANSWER], "times": "always"}])
            requests = tuple(f"{each.method} {each.path} {each.status}" for each in run.requests)
            if not requests and run.status == 0:
                return FoundLite(wrong=f"The client sends no request to LITE_BASE_URL. {DOCUMENT}")
            text = run.text()
        except SubjectFailure as error:
            first, _, rest = str(error).partition("\n")
            return FoundLite(wrong=f"The client does not answer one prompt. {first} {DOCUMENT}\n{rest}".rstrip())
        return judge(text, requests, time.monotonic() - begun)


def judge(text: str, requests: tuple[str, ...], seconds: float) -> FoundLite:
    """Return the findings about a client from one run. This is a pure function."""
    wrong = "" if text == ANSWER else f"The model said {ANSWER!r}, and the client printed {text!r} on stdout. {DOCUMENT}"
    return FoundLite(requests, seconds, wrong)
