"""`fake-codex exec`: one prompt and one turn, answered from the same script as the app-server, with the texts of `codex exec`
0.92.

`fake-codex exec [--json] [-o FILE] [--skip-git-repo-check] [PROMPT | -]`

`fake-codex exec review [--uncommitted | --base BRANCH | --commit SHA [--title TITLE] | PROMPT | -]`

The options, texts and exit statuses are those of the real binary in recordings. The exit status is 0 if the turn is
completed, 1 if the turn failed, and 2 for wrong arguments. With `FAKE_CODEX_STATE`, `resume` continues a thread of another
process, as in the real `codex exec`. Without `FAKE_CODEX_STATE`, threads are not stored, so `resume` starts a new thread
with the given id. The fake writes only those lines of the real binary's log that report failed requests to the model.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from codex_fakes.exec import review
from codex_fakes.exec.options import Wrong, parse
from codex_fakes.exec.output import JsonOutput, Output, TextOutput
from codex_fakes.scripted.methods.both import loaded, take
from codex_fakes.scripted.methods.table import handler_of
from codex_fakes.scripted.session import Session
from codex_fakes.scripted.state.settings import Settings
from codex_fakes.scripted.state.thread import Thread
from codex_fakes.scripted.state.waits import Gate, Never, Ticket
from codex_fakes.scripted.turns.turn import Turn
from codex_fakes.stdio.loop import Ended, write_out
from codex_replay.core.text.error_text import error_text
from codex_replay.protocol.turn.serde import Mismatch, read_any
from codex_replay.protocol.versions import DEFAULT

_APP_SERVER = tuple(f"FAKE_CODEX_{name}" for name in ("CASSETTE", "MATCH", "CAPTURE", "PACE", "FAULT"))
_NO_PROVIDER = (
    "Error: No default OSS provider configured. Use --local-provider=provider or set oss_provider to one of: "
    "lmstudio, ollama, ollama-chat in config.toml\n"
)


def run(words: list[str], overrides: list[tuple[str, str]]) -> int:
    """Run `codex exec` with the given arguments; return the exit status."""
    try:
        options = parse(words)
        if "version" in options:
            sys.stdout.write(f"codex-cli-exec {DEFAULT}\n")
            return 0
        return _Exec(options, overrides).run()
    except Wrong as wrong:
        write_out(str(wrong).removesuffix("\n"))
        return wrong.status
    except Ended as end:
        return end.status or 0  # the reason is on stderr
    except (ValueError, OSError) as error:
        write_out(f"fake-codex: {error_text(error)}")
        return 2


class _Exec:
    """One run of `codex exec`. The run gets the frames that an app-server would send to its client."""

    user_agent = f"codex_exec/{DEFAULT}"
    experimental = False
    unwanted = frozenset[str]()
    gaps = 0.0  # all comes at once: nobody can miss a part of the output
    at_end = True
    _resumed: Thread | None = None

    def __init__(self, options: dict[str, Any], overrides: list[tuple[str, str]]) -> None:
        self._options = options
        environ = os.environ
        self._cwd = os.path.abspath(options.get("cd", os.getcwd()))
        if not os.path.exists(self._cwd):
            raise Wrong("Error: No such file or directory (os error 2)\n", 1)
        if not options.get("anywhere") and "yolo" not in options and not _in_repository(self._cwd):
            raise Wrong("Not inside a trusted directory and --skip-git-repo-check was not specified.\n", 1)
        home = environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")
        _tell_unheeded(environ)
        script, ledger = environ.get("FAKE_CODEX_SCRIPT"), environ.get("FAKE_CODEX_LEDGER")
        given = overrides + options["config"]
        store = None
        if environ.get("FAKE_CODEX_STATE"):
            from codex_fakes.scripted.state.store import Store

            store = Store(environ["FAKE_CODEX_STATE"])
        self._session = Session(self, handler_of, script or None, ledger or None, home, given, self._cwd, store=store)
        if self._session.file.refusal is not None:
            raise Wrong(f"Error loading config.toml: {self._session.file.refusal}\n", 1)
        self._session.model.log = _log
        self._schema = None if "review" in options else _schema(options.get("schema"))
        self._thread = self._open()
        if self._resumed is not None:
            self._session.save()  # the real one loads the thread even if no prompt comes
        self._review: Turn | None = None
        self._prompt = self._prepare_review() if "review" in options else _prompt(options["prompt"])
        self._output: Output = (JsonOutput if options.get("json") else TextOutput)(self._thread, self._prompt)

    def _prepare_review(self) -> str:
        """Prepare the review that the options request. Return the text that takes the place of the prompt."""
        given = self._options["prompt"]
        try:
            target = review.target(self._options, _prompt(given) if given == "-" else given)
        except ValueError as error:
            raise Wrong(f"Error: {error}\n", 1) from None
        hint, self._review = review.review(self._session, self._thread, target)
        return hint

    def _open(self) -> Thread:
        options = self._options
        limits, config = self._session.table["settings"], self._session.config
        settings = Settings(config, self._cwd, self._session.home, limits, DEFAULT, options.get("profile"))
        if "oss" in options:
            settings.provider = options.get("provider") or settings.config.get("oss_provider") or ""
            if not settings.provider:
                raise Wrong(_NO_PROVIDER, 1)
        settings.model = options.get("model", settings.model)
        settings.policy = "never"  # no client can be asked
        mode = (
            "danger-full-access" if "yolo" in options else "workspace-write" if "full-auto" in options else options.get("sandbox")
        )
        settings.change({"sandbox": mode}, "v1")
        if settings.sandbox["type"] == "workspaceWrite":
            more = [os.path.join(self._cwd, folder) for folder in options["dir"]]
            settings.sandbox = {**settings.sandbox, "writableRoots": [*settings.sandbox["writableRoots"], *more]}
        if (wrong := settings.wrong()) is not None:
            named = wrong.startswith(("Model provider", "config profile"))
            raise Wrong(f"Error: {wrong}\n" if named else f"Error loading config.toml: {wrong}\n", 1)
        if self._session.store is None:
            thread = self._session.new_thread(settings)
            if _is_uuid(options.get("resume")):
                thread.id = options["resume"]
            return thread
        self._resumed = self._stored(settings.provider)
        if self._resumed is None:
            thread = self._session.new_thread(settings)
            thread.source = "exec"
            return thread
        settings.base_instructions = self._resumed.settings.base_instructions
        take(self._session, self._resumed, settings)
        return self._resumed

    def _stored(self, provider: str) -> Thread | None:
        """Return the thread to resume: the thread with the given id, or the last changed thread.

        Return None if a new thread must start.
        """
        options = self._options
        if "resume" not in options:
            return None
        kept = [thread for thread in self._session.threads.values() if not thread.archived]
        if "latest" not in options:
            return next((thread for thread in kept if thread.id == options["resume"]), None)
        kept = [thread for thread in kept if thread.asked and thread.settings.provider == provider]
        kept = [thread for thread in kept if "all" in options or thread.cwd == self._cwd]
        return max(kept, key=lambda thread: (int(thread.updated), thread.id), default=None)

    def run(self) -> int:
        """Run the turn. Return the exit status."""
        self._output.begin()
        self._session.listen(self._thread, "v1")
        if self._resumed is not None:
            loaded(self._session, self._resumed)
        self._thread.updated = time.time()
        if "review" in self._options and self._review is None:
            self._output.event({"type": "error", "message": f'"{self._thread.settings.cwd}" is not a git repository'})
            write_out("fake-codex: the real `codex exec review` now hangs; this one ends. Give the script a `git`.")
            return 1
        self._thread.begin(self._review or self._turn())
        while self._thread.waits is not None:
            if isinstance(self._thread.waits, Gate | Never):
                raise ValueError("the script waits for a gate, which `exec` cannot open: remove it.")
            if isinstance(self._thread.waits, Ticket):
                raise ValueError(
                    "the script requests an answer of the client (an approval, a tool), but `exec` has no client: remove it."
                )
            due = self._session.next_due()
            if due is not None:
                time.sleep(max(0.0, due - time.monotonic()))
            self._session.advance()
        self._session.save()
        self._session.close()
        message = self._output.end(self._options.get("last"))
        if "last" in self._options:
            with open(self._options["last"], "w", encoding="utf-8") as file:
                file.write(message or "")
        return 1 if self._output.failed else 0

    def _turn(self) -> Turn:
        items = [{"type": "localImage", "path": path} for path in self._options["image"]]
        items.append({"type": "text", "text": self._prompt})
        return Turn(self._thread, self._session.model, self._session.table, items, self._schema)

    def delay_output(self, seconds: float) -> None:
        """Hold nothing back."""

    def write_out(self, frame: dict[str, Any]) -> None:
        """Process a frame of the thread: print it if it is an event."""
        self._session.save()
        if frame.get("method", "").startswith("codex/event/"):
            self._output.event(frame["params"]["msg"])

    def answer_error(self, request_id: Any, error: dict[str, Any]) -> None:
        """Do nothing, because `exec` has no client that sends requests."""


def _log(text: str) -> None:
    """Write a line in the form of the real binary's log. SDKs show the last log line when a turn fails."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    write_out(f"{now} ERROR codex_api::endpoint::responses: error={text}")


def _tell_unheeded(environ: Mapping[str, str]) -> None:
    """Warn about settings that apply only to the app-server.

    The warning names each setting: `exec` has no client whose frames could be matched or captured.
    """
    unheeded = [name for name in _APP_SERVER if environ.get(name)]
    if unheeded:
        write_out(f"fake-codex: exec ignores {', '.join(unheeded)}: only `fake-codex app-server` uses it.")


def _schema(path: str | None) -> Any:
    """Return the JSON in a schema file (None without a path). Raises `Wrong` if the file cannot be read or is not JSON."""
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return read_any(file.read())
    except OSError as error:
        raise Wrong(f"Failed to read output schema file {path}: {error.strerror} (os error {error.errno})\n", 1) from None
    except Mismatch as error:
        raise Wrong(f"Output schema file {path} is not valid JSON: {error}\n", 1) from None


def _is_uuid(word: Any) -> bool:
    return isinstance(word, str) and len(word) == 36 and word.count("-") == 4


def _in_repository(folder: str) -> bool:
    while True:
        if os.path.exists(os.path.join(folder, ".git")):
            return True
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent


def _prompt(given: str | None) -> str:
    if given is not None and given != "-":
        return given
    if given is None:
        sys.stderr.write("Reading prompt from stdin...\n")
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        raise Wrong("No prompt provided via stdin.\n", 1)
    return text
