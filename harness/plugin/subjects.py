"""What `--app-server` names: the fake, a program in the fake's place, an installed Codex, or any command line."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from harness.plugin.commands import BadCommand, command_of
from harness.protocol.bundle import DEFAULT_VERSION


class BadSubject(ValueError):
    """No such subject; the text is a sentence that says what would be one."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A program under test. `name` is as it was given, `version` the Codex that it is or plays ("unknown" if not known).

    A `live` one is a server with a mind of its own, started in a hermetic home with a scripted upstream; any other replays
    a cassette.
    """

    name: str
    argv: tuple[str, ...]
    live: bool
    version: str

    @property
    def slug(self) -> str:
        """The name as part of a file name: of a command line its words without their folders."""
        short = " ".join(word.rsplit("/", 1)[-1] for word in self.name.split())
        return "".join(c if c.isalnum() or c in "@.-" else "_" for c in short)[:60]


def parse_app_server(text: str) -> Subject:
    """Return the subject that `text` names; raises `BadSubject`."""
    if text == "fake":
        return Subject(text, (str(_fake_codex()), "app-server"), False, DEFAULT_VERSION)
    if text.startswith("fake:"):
        return Subject(text, _command(text, text.removeprefix("fake:")), False, DEFAULT_VERSION)
    if text.startswith("codex@"):
        return _codex(text, text.removeprefix("codex@"))
    argv = _command(text, text)
    from harness.shell.codex_origin import version_of

    return Subject(text, argv, True, version_of(argv) or "unknown")


def _fake_codex() -> Path:
    path = Path(sys.executable).with_name("fake-codex")
    if not path.exists():
        raise BadSubject(f"--app-server fake: there is no {path}; install codex-replay into this environment with pip.")
    return path


def _codex(text: str, version: str) -> Subject:
    from harness.shell.codex import CodexInstallError, find_installed

    try:
        path = find_installed(version)
    except CodexInstallError as error:
        raise BadSubject(f"--app-server {text}: {error}") from None
    if path is None:
        raise BadSubject(f"--app-server {text}: it is not installed; run `codex-replay codex install {version}` first.")
    return Subject(text, (str(path), "app-server"), True, version)


def _command(text: str, command: str) -> tuple[str, ...]:
    if not command.strip():
        raise BadSubject(
            "--app-server: the command line is empty; give fake, codex@VERSION, or a command that starts an app-server."
        )
    try:
        return command_of(f"--app-server {text}", command, "fake, codex@VERSION, or a whole command line")
    except BadCommand as error:
        raise BadSubject(str(error)) from None
