"""Try an editor client once: start the editor with the scripted fake as its codex, send one prompt, and note the result."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from codex_replay.plugin.base.subjects import parse_app_server
from codex_replay.plugin.editor_client.fixture import EditorClient
from codex_replay.shell.rpc.client import SubjectFailure

if TYPE_CHECKING:
    from codex_replay.shell.http.backend_process import BackendProcess

ANSWER = "Hello from the model."
#: Seconds that an editor has to end after `shutdown`.
EXIT = 10.0
DOCUMENT = "docs/editor-client.md has the commands and reports of a driver."


@dataclass(frozen=True, slots=True)
class FoundEditor:
    """The behaviour of an editor client in a trial: the methods that its codex received, the reports to the user, and its exit
    status.

    `seconds` is the duration of the turn, 0 if it did not complete. `wrong` is a sentence about the failure if the editor failed
    in the trial.
    """

    methods: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    status: int = 0
    seconds: float = 0.0
    wrong: str = ""


def _no_backend() -> BackendProcess:
    raise AssertionError("the fake needs no backend")


def try_editor(command: str, wait: float, app_server: str = "fake") -> FoundEditor:
    """Start the editor, send one prompt, and end the editor; `wait` is the time limit for one report, in seconds.

    Raises `pytest.UsageError` if the command is invalid, and `BadSubject` if `app_server` is."""
    with tempfile.TemporaryDirectory(prefix="codex-replay-init-") as made:
        client = EditorClient(command, parse_app_server(app_server), Path(made), wait, _no_backend, "init")
        begun = time.monotonic()
        try:
            editor = client([{"items": [ANSWER], "times": "always"}])
            turn = editor.turn("Hello")
            seconds = time.monotonic() - begun
            methods = tuple(dict.fromkeys(str(sent["method"]) for sent in editor.sent() if "method" in sent))
            found = judge(turn.status, turn.text, turn.errors, [report["report"] for report in turn.reports], methods, seconds)
            if found.wrong:
                return found
            editor.timeout = min(wait, EXIT)
            try:
                return replace(found, status=editor.close())
            except SubjectFailure:
                late = f"The editor completes a turn, but does not end within {editor.timeout:g} s after the command shutdown"
                return replace(found, wrong=f"{late}: the editor must end its server and exit. {DOCUMENT}")
        except SubjectFailure as error:
            first, _, rest = str(error).partition("\n")
            return FoundEditor(wrong=f"The editor does not complete one turn. {first} {DOCUMENT}\n{rest}".rstrip())
        finally:
            for each in client.editors:
                each.stop()


def judge(ended: str, text: str, errors: str, reports: list[str], methods: tuple[str, ...], seconds: float) -> FoundEditor:
    """Return the findings about an editor from one turn. This is a pure function."""
    kinds = tuple(dict.fromkeys(reports))
    wrong = ""
    if ended != "completed":
        wrong = f"The editor reports that its first turn ended as {ended}{f': {errors}' if errors else ''}. {DOCUMENT}"
    elif not methods:
        wrong = f"The editor never started the program whose path replaces {{codex}}. {DOCUMENT}"
    elif text != ANSWER:
        wrong = f"The model said {ANSWER!r}, and the editor reports the text {text!r}. {DOCUMENT}"
    return FoundEditor(methods, kinds, seconds=seconds if ended == "completed" else 0.0, wrong=wrong)
