"""Parse the options that name programs under test: `--app-server`, `--backend`, `--lite-client`, `--editor-client`, `--proxy`.

One parser reads the values of all options that name a program under test. A `SubjectOption` lists the forms of value that
one option accepts. The parser returns a `Choice`, which other modules convert to a program or an address.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from codex_replay.protocol.data_tables import unavailable
from codex_replay.protocol.versions import DEFAULT, is_version

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping


class BadSubject(ValueError):
    """An option has an invalid value; the text is a sentence that ends with the allowed values."""


@contextmanager
def usage_errors() -> Iterator[None]:
    """Inside the `with` block, convert a `BadSubject` to a `pytest.UsageError`."""
    try:
        yield
    except BadSubject as error:
        import pytest

        raise pytest.UsageError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Choice:
    """The subject that an option names.

    | kind | | argv | value |
    |---|---|---|---|
    | name | `fake`, `reference` | | the name |
    | fake | `fake:COMMAND`, a program in the fake's place | the command | |
    | codex | `codex@VERSION` | | the version |
    | imitated | `fake@VERSION`, the fake as another version | | the version |
    | url | an http or https URL | | the URL without a slash at its end |
    | command | a command line | its words, the program by its whole path | |
    | entry | an entry of a table in the pyproject.toml | | the name of the entry |
    """

    kind: Literal["name", "fake", "codex", "imitated", "url", "command", "entry"]
    argv: tuple[str, ...] = ()
    value: str = ""


@dataclass(frozen=True, slots=True)
class SubjectOption:
    """One option, and the allowed forms of its value.

    `flag` is the option; `choices` describes the allowed forms in messages; `names` are the fixed names that the option
    accepts. `must_hold` is a pair: a placeholder that a command must contain, and the end of the error message if the
    placeholder is missing.
    """

    flag: str
    choices: str
    names: tuple[str, ...] = ()
    fake: bool = False
    codex: bool = False
    url: bool = False
    command: bool = True
    must_hold: tuple[str, str] | None = None

    def parse(self, text: str, entries: Container[str] = ()) -> Choice:
        """Return the `Choice` that `text`, the value of the option, names.

        `entries` are the names that the project's configuration defines, such as `mine` in `[tool.codex-replay.proxy.mine]`.
        Raises `BadSubject` if the value is invalid.
        """
        if text in entries:
            return Choice("entry", value=text)
        if text in self.names:
            return Choice("name", value=text)
        if self.fake and text.startswith("fake:"):
            return Choice("fake", self.split_command(text.removeprefix("fake:"), text))
        if self.codex and text.startswith("codex@"):
            return Choice("codex", value=text.removeprefix("codex@"))
        if self.codex and self.fake and text.startswith("fake@"):
            return Choice("imitated", value=text.removeprefix("fake@"))
        if self.url and text.startswith(("http://", "https://")):
            try:
                urlsplit(text).port  # noqa: B018 - raises for a port out of range
            except ValueError as error:
                raise BadSubject(f"{self.flag} {text}: this is not a URL ({error}); give {self.choices}.") from None
            return Choice("url", value=text.rstrip("/"))
        if not self.command:
            raise BadSubject(f"{self.flag} {text}: give {self.choices}.")
        return Choice("command", self.split_command(text, text))

    def split_command(self, command: str, text: str) -> tuple[str, ...]:
        """Return the words of a command line, the first as a full path; `text` is the value of the option, for error messages.

        Raises `BadSubject` if the program does not exist.
        """
        given = f"{self.flag} {text}"
        if not command.strip():
            raise BadSubject(f"{self.flag}: the command line is empty; give {self.choices}.")
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise BadSubject(f"{given}: this is not a command line ({error}).") from None
        found = shutil.which(words[0])
        if found is None and os.path.isfile(words[0]):
            raise BadSubject(
                f"{given}: {words[0]} is a file, but not executable; put its interpreter before it, as in node server.js."
            )
        if found is None:
            raise BadSubject(f"{given}: there is no such program; give {self.choices}.")
        if self.must_hold is not None and not any(self.must_hold[0] in word for word in words[1:]):
            raise BadSubject(f"{given}: it must contain {self.must_hold[0]}, {self.must_hold[1]}.")
        return (os.path.abspath(found), *words[1:])


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return an argument of a command with its placeholders replaced by `values`."""
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


# -- the app-server ------------------------------------------------------------------------------------------------------------

APP_SERVER = SubjectOption(
    "--app-server", "fake, fake@VERSION, codex@VERSION, or a whole command line", ("fake",), fake=True, codex=True
)
#: The URLs of a running server: ws://HOST:PORT, wss://HOST, unix://PATH.
LISTENING = ("ws://", "wss://", "unix://")


def running_elsewhere(text: str) -> str:
    """Return an error text if the value of the option names an app-server that already runs (suites cannot use it).

    Otherwise return "".
    """
    if not text.startswith(LISTENING):
        return ""
    return (
        f"--app-server {text}: each case starts a server with its own home and model, but this server already runs. Name "
        'the command that starts it: --app-server "codex-replay connect -- codex app-server".'
    )


@dataclass(frozen=True, slots=True)
class Subject:
    """A program under test: its `name` as the user gave it, and `version`, the Codex version that it is or imitates ("unknown" if
    not known).

    If `live` is True, the program is started in a temporary home folder with a scripted model; otherwise it replays a
    cassette.
    """

    name: str
    argv: tuple[str, ...]
    live: bool
    version: str

    @property
    def slug(self) -> str:
        """The name of the program, in a form that is allowed in a file name."""
        return slug(self.name)


def slug(name: str) -> str:
    """Return the name of a program under test as part of a file name; a command line becomes its words without folders."""
    short = " ".join(word.rstrip("/").rsplit("/", 1)[-1] for word in name.split())
    return "".join(c if c.isalnum() or c in "@.-" else "_" for c in short)[:60]


def parse_app_server(text: str) -> Subject:
    """Return the program under test that `text` names; raises `BadSubject` if there is no such program."""
    if text.startswith(LISTENING):
        return Subject(text, (str(Path(sys.executable).with_name("codex-replay")), "connect", text), True, "unknown")
    choice = APP_SERVER.parse(text)
    if choice.kind == "name":
        return Subject(text, (str(_fake_codex()), "app-server"), False, DEFAULT)
    if choice.kind == "fake":
        return Subject(text, choice.argv, False, DEFAULT)
    if choice.kind == "codex":
        return _codex(text, choice.value)
    if choice.kind == "imitated":
        return _imitated(text, choice.value)
    from codex_replay.shell.codex.origin import version_of

    return Subject(text, choice.argv, True, version_of(choice.argv) or "unknown")


def _fake_codex() -> Path:
    path = Path(sys.executable).with_name("fake-codex")
    if not path.exists():
        raise BadSubject(f"--app-server fake: there is no {path}; install codex-replay into this environment with pip.")
    return path


def _imitated(text: str, version: str) -> Subject:
    if missing := unavailable("turn", version):
        instead = f" Run the real one: --app-server codex@{version}" if is_version(version) else ""
        raise BadSubject(f"--app-server {text}: {missing}{instead}")
    env = shutil.which("env") or "/usr/bin/env"
    return Subject(text, (env, f"FAKE_CODEX_VERSION={version}", str(_fake_codex()), "app-server"), False, version)


def _codex(text: str, version: str) -> Subject:
    from codex_replay.shell.codex.cache import find_installed
    from codex_replay.shell.codex.errors import CodexInstallError

    try:
        path = find_installed(version)
    except CodexInstallError as error:
        raise BadSubject(f"--app-server {text}: {error}") from None
    if path is None:
        raise BadSubject(f"--app-server {text}: it is not installed; run `codex-replay codex install {version}` first.")
    return Subject(text, (str(path), "app-server"), True, version)
