"""The interfaces (protocols) of the functions that handle methods, and of the session that they use.

Only type checkers load the module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from codex_fakes.scripted.state.config_file import ConfigFile
from codex_fakes.scripted.state.model import Model
from codex_fakes.scripted.state.protocols import Server
from codex_fakes.scripted.state.settings import Settings
from codex_fakes.scripted.state.store import Store
from codex_fakes.scripted.state.thread import Thread


class Session(Protocol):
    """The interface of a session: the threads of one process, its settings, and the connection to the client."""

    version: str
    server: Server
    model: Model
    table: dict[str, Any]
    threads: dict[str, Thread]
    store: Store | None
    rules: list[list[str]]
    processes: dict[str, Any]
    home: str
    cwd: str
    config: dict[str, Any]
    user_config: dict[str, Any]
    flags: dict[str, Any]
    file: ConfigFile
    skills: dict[str, bool]
    login: tuple[str, str] | None
    account: dict[str, Any] | None

    @property
    def answers(self) -> dict[str, Any]:
        """Return the table of constant answers."""

    @property
    def client_name(self) -> str:
        """The client's name, from its initialize request."""

    def answer(self, request_id: Any, result: Any) -> None:
        """Answer a request of the client."""

    def send(self, frame: dict[str, Any]) -> None:
        """Send a notification."""

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Call a function after some seconds, whether a turn runs or not."""

    def ask_again(self, thread: Thread) -> None:
        """Send the open requests of a thread's turn a second time."""

    def settings(self, params: dict[str, Any], api: str) -> Settings:
        """Return the settings of a new thread."""

    def given_config(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the `config` of a request as nested tables."""

    def write_config(self, user: dict[str, Any]) -> None:
        """Replace the user's layer of the configuration."""

    def leave(self, thread: Thread) -> Thread:
        """Return a copy of a thread that is loaded a second time during a turn."""

    def new_thread(self, settings: Settings) -> Thread:
        """Make a thread."""

    def thread(self, text: Any, api: str = "v2", missing: str | None = None) -> Thread:
        """Return the loaded thread with the given id. Raises `Refused` if no such thread is loaded."""

    def listen(self, thread: Thread, api: str, raw: bool = False) -> str:
        """Attach a listener of the client to a thread. Return the id of the listener's subscription."""


Method = Callable[[Session, Any, dict[str, Any]], None]
