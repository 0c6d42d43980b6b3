"""`fake-codex exec`: one prompt, one turn, answered from the same script as the app-server, with the texts of `codex exec` 0.92.

    fake-codex exec [--json] [-o FILE] [--skip-git-repo-check] [PROMPT | -]

Options, texts and exit statuses are those of recordings of the real binary: status 0 when the turn is completed, 1 when it
failed, 2 for wrong arguments. With `FAKE_CODEX_STATE`, `resume` continues a thread of another process, as in the real `codex
exec`. Without `FAKE_CODEX_STATE` threads are not stored, so `resume` starts a new thread under the given id. The log lines of the
real binary (with a time and `ERROR codex_api...`) are left out."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import Any

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

_VALUES = {
    "-c": "config", "--config": "config", "--enable": "feature", "--disable": "feature", "-i": "image", "--image": "image",
    "-m": "model", "--model": "model", "--local-provider": "provider", "-s": "sandbox", "--sandbox": "sandbox", "-p": "profile",
    "--profile": "profile", "-C": "cd", "--cd": "cd", "--add-dir": "dir", "--output-schema": "schema", "--color": "color",
    "-o": "last", "--output-last-message": "last",
}  # fmt: skip
_FLAGS = {
    "--json": "json", "--experimental-json": "json", "--skip-git-repo-check": "anywhere", "--full-auto": "full-auto",
    "--oss": "oss", "--yolo": "yolo", "--dangerously-bypass-approvals-and-sandbox": "yolo", "--last": "latest", "--all": "all",
}  # fmt: skip
_APP_SERVER = tuple(f"FAKE_CODEX_{name}" for name in ("CASSETTE", "MATCH", "CAPTURE", "PACE", "FAULT"))
_MANY = ("config", "dir", "image")  # may be repeated
_POSSIBLE = {
    "sandbox": ("--sandbox <SANDBOX_MODE>", ("read-only", "workspace-write", "danger-full-access")),
    "color": ("--color <COLOR>", ("always", "never", "auto")),
}
_NO_PROVIDER = (
    "Error: No default OSS provider configured. Use --local-provider=provider or set oss_provider to one of: "
    "lmstudio, ollama, ollama-chat in config.toml\n"
)
_SHOWN = {"last": "--output-last-message <FILE>", "config": "--config <key=value>", "model": "--model <MODEL>"}
_USAGE = "Usage: codex exec [OPTIONS] [PROMPT] [COMMAND]"
_HELP = "\n\nFor more information, try '--help'.\n"


class Wrong(Exception):
    """The command cannot run; the text is for stderr, with an exit status."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def run(words: list[str], overrides: list[tuple[str, str]]) -> int:
    """Run `codex exec` with these arguments; return the exit status."""
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


def parse(words: list[str]) -> dict[str, Any]:
    """Return the options by name, `config` as a list of pairs, the prompt and the thread to resume; raises `Wrong`."""
    options: dict[str, Any] = {name: [] for name in _MANY}
    plain: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            plain, left = plain + left, []
        elif word in ("-V", "--version"):
            return {"version": True}
        elif name in _VALUES:
            if not equals and not left:
                shown = _SHOWN.get(_VALUES[name], name)
                raise Wrong(f"error: a value is required for '{shown}' but none was supplied{_HELP}", 2)
            _take(options, _VALUES[name], value if equals else left.pop(0))
            takes_all = _VALUES[name] == "image" and not equals and "resume" not in options
            while takes_all and left and (left[0] == "-" or not left[0].startswith("-")):
                _take(options, "image", left.pop(0))
        elif word in _FLAGS:
            options[_FLAGS[word]] = True
        elif word.startswith("-") and word != "-":
            tip = f"  tip: to pass '{word}' as a value, use '-- {word}'"
            raise Wrong(f"error: unexpected argument '{word}' found\n\n{tip}\n\n{_USAGE}{_HELP}", 2)
        elif word == "resume" and not plain and "resume" not in options:
            options["resume"] = True
        else:
            plain.append(word)
    if "resume" in options and len(plain) > ("latest" in options):
        options["resume"] = plain.pop(0)  # with --last it is ignored
    if len(plain) > 1:
        raise Wrong(f"error: unexpected argument '{plain[1]}' found\n\n{_USAGE}{_HELP}", 2)
    if "full-auto" in options and "yolo" in options:
        other = "--dangerously-bypass-approvals-and-sandbox"
        usage = "Usage: codex exec --full-auto <PROMPT>"
        raise Wrong(f"error: the argument '--full-auto' cannot be used with '{other}'\n\n{usage}{_HELP}", 2)
    options["prompt"] = plain[0] if plain else None
    return options


def _take(options: dict[str, Any], name: str, given: str) -> None:
    """Add the value of an option; raises `Wrong` for an invalid value."""
    shown, possible = _POSSIBLE.get(name, ("", ()))
    if possible and given not in possible:
        raise Wrong(f"error: invalid value '{given}' for '{shown}'\n  [possible values: {', '.join(possible)}]{_HELP}", 2)
    if name == "config":
        key, _, text = given.partition("=")
        options[name].append((key.strip(), text.strip()))
    elif name in _MANY:
        options[name] += given.split(",") if name == "image" else [given]
    else:
        options[name] = given


class _Exec:
    """One run of `codex exec`. It receives the frames of the thread in place of an app-server."""

    user_agent = f"codex_exec/{DEFAULT}"
    experimental = False
    gaps = 0.0  # all comes at once: nobody can miss a part of the output
    at_end = True
    _resumed: Thread | None = None

    def __init__(self, options: dict[str, Any], overrides: list[tuple[str, str]]) -> None:
        self._options = options
        environ = os.environ
        self._cwd = os.path.abspath(options.get("cd", os.getcwd()))
        if not os.path.exists(self._cwd):
            raise Wrong("Error: No such file or directory (os error 2)\n", 1)
        if not options.get("anywhere") and not _in_repository(self._cwd):
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
        self._schema = _schema(options.get("schema"))
        self._thread = self._open()
        if self._resumed is not None:
            self._session.save()  # the real one loads the thread even if no prompt comes
        self._prompt = _prompt(options["prompt"])
        self._output: Output = (JsonOutput if options.get("json") else TextOutput)(self._thread, self._prompt)

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
        """Return the thread to resume, by its id or the last changed one; None if a new thread must start."""
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
        """Run the turn; return the exit status."""
        self._output.begin()
        self._session.listen(self._thread, "v1")
        if self._resumed is not None:
            loaded(self._session, self._resumed)
        self._thread.updated = self._session.now
        items = [{"type": "localImage", "path": path} for path in self._options["image"]]
        items.append({"type": "text", "text": self._prompt})
        self._thread.begin(Turn(self._thread, self._session.model, self._session.table, items, self._schema))
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

    def delay_output(self, seconds: float) -> None:
        """Hold nothing back."""

    def write_out(self, frame: dict[str, Any]) -> None:
        """Process a frame of the thread: events are printed."""
        self._session.save()
        if frame.get("method", "").startswith("codex/event/"):
            self._output.event(frame["params"]["msg"])

    def answer_error(self, request_id: Any, error: dict[str, Any]) -> None:
        """Do nothing, because `exec` never gets requests."""


def _tell_unheeded(environ: Mapping[str, str]) -> None:
    """Warn about settings that apply only to the app-server: `exec` has no client with frames to match or to capture."""
    unheeded = [name for name in _APP_SERVER if environ.get(name)]
    if unheeded:
        write_out(f"fake-codex: exec ignores {', '.join(unheeded)}: only `fake-codex app-server` uses it.")


def _schema(path: str | None) -> Any:
    """Return the schema in a file; raises `Wrong` if it has none."""
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
