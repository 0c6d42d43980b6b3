"""What the scripted fake does with each message: the table of methods, the threads, the replies to its own requests."""

from __future__ import annotations

from time import time

from fake_server import scripted_methods, scripted_methods_v1
from fake_server.scripted_ids import uuid4, uuid_error
from fake_server.scripted_methods import Refused
from fake_server.scripted_model import Model
from fake_server.scripted_settings import Settings, read_config
from fake_server.scripted_thread import Sleep, Thread, Ticket
from harness.core.jsonrpc import kind
from harness.core.jsontext import loads
from harness.protocol.schema_files import table
from harness.protocol.turn import load_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Server(Protocol):
        """Who hears what the threads say."""

        user_agent: str

        def say(self, frame: dict[str, Any]) -> None:
            """Say a frame."""

        def answer_error(self, request_id: Any, error: dict[str, Any]) -> None:
            """Refuse a request."""


METHODS = {**scripted_methods.METHODS, **scripted_methods_v1.METHODS}


class Session:
    """All threads of one process, the model, and the requests that wait for the client."""

    def __init__(
        self,
        server: Server,
        script: str | None,
        ledger: str | None,
        home: str,
        overrides: list[tuple[str, str]],
        cwd: str,
    ) -> None:
        self.server = server
        self.table = load_table()
        self.model = Model(script, ledger)
        self.model.load()
        self.home = home
        self.cwd = cwd
        self.config = read_config(home, overrides)
        self.threads: dict[str, Thread] = {}
        self.rules: list[list[str]] = []  # what amendments have allowed
        self.failed = False
        self._requests = 0
        self._tickets: dict[int, Ticket] = {}
        self._answers: dict[str, Any] | None = None

    # -- in -----------------------------------------------------------------------------------------------------------

    def receive(self, message: dict[str, Any]) -> None:
        """Take a request or a reply."""
        if kind(message) != "request":
            ticket = self._tickets.pop(message["id"], None) if type(message["id"]) is int else None
            if ticket is not None:  # else a reply to nothing: the real server is silent
                ticket.reply = message
            return
        try:
            self._request(message)
        except Refused as refused:
            self.server.answer_error(message["id"], {"code": refused.code, "message": str(refused)})

    def _request(self, message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params") or {}
        self._require(method, params)
        handler = METHODS.get(method)
        if handler is not None:
            handler(self, message["id"], params)
            return
        answer = self.answers["results"].get(method)
        if answer is None:
            self.failed = True
            from fake_server.scripted import NOT_COVERED
            from fake_server.stdio import say

            text = f"fake-codex: the script does not cover {method}: record a cassette of it, or leave it out."
            say(text)
            raise Refused(text, NOT_COVERED)
        if "error" in answer:
            raise Refused(answer["error"])
        self.answer(message["id"], answer["result"])

    @property
    def answers(self) -> dict[str, Any]:
        """The table of constant answers, and of what a request must have."""
        if self._answers is None:
            with open(table("0.92.0", "answers.json"), "rb") as file:
                self._answers = loads(file.read())
        return self._answers

    def _require(self, method: str, params: Any) -> None:
        """Refuse params that lack a field or have one of a wrong type, in the server's words."""
        for name, kind_ in self.answers["required"].get(method, {}).items():
            if type(params) is not dict or name not in params:
                raise Refused(f"Invalid request: missing field `{name}`")
            value = params[name]
            if kind_ == "string" and type(value) is not str:
                raise Refused(f"Invalid request: invalid type: {serde_name(value)}, expected a string")
            if kind_ == "list" and type(value) is not list:
                raise Refused(f"Invalid request: invalid type: {serde_name(value)}, expected a sequence")
        for name in ("cwd", "model"):
            value = params.get(name) if type(params) is dict else None
            if value is not None and type(value) is not str:
                raise Refused(f"Invalid request: invalid type: {serde_name(value)}, expected a string")

    # -- out ----------------------------------------------------------------------------------------------------------

    def answer(self, request_id: Any, result: Any) -> None:
        """Answer a request of the client."""
        self.server.say({"id": request_id, "result": result})

    def send(self, frame: dict[str, Any]) -> None:
        """Say a notification."""
        self.server.say(frame)

    def ask(self, frame: dict[str, Any], ticket: Ticket) -> None:
        """Say a request; its reply goes to the ticket."""
        frame["id"] = self._requests
        ticket.asked = True
        self._tickets[self._requests] = ticket
        self._requests += 1
        self.server.say(frame)

    # -- time ---------------------------------------------------------------------------------------------------------

    @property
    def may_advance(self) -> bool:
        """Tell whether a turn can go on now."""
        return any(thread.waits is not None and thread.waits.ready() for thread in self._running())

    def _running(self) -> list[Thread]:
        return [thread for thread in self.threads.values() if thread.waits is not None]

    def advance(self) -> None:
        """Let each turn that can go on do so."""
        for thread in self._running():
            thread.step()

    def next_due(self) -> float | None:
        """Return when the next pause of the script ends."""
        times = [thread.waits.until for thread in self._running() if isinstance(thread.waits, Sleep)]
        return min(times) if times else None

    # -- threads ------------------------------------------------------------------------------------------------------

    def settings(self, params: dict[str, Any], api: str) -> Settings:
        """Return the settings of a new thread; `config` in the request goes over config.toml."""
        config = self.config
        if params.get("config"):
            from copy import deepcopy

            from fake_server.scripted_settings import put

            config = deepcopy(config)
            for key, value in params["config"].items():
                put(config, key, value)
        settings = Settings(config, self.cwd, self.home, self.table["settings"])
        settings.change(params, api)
        return settings

    def new_thread(self, settings: Settings) -> Thread:
        """Make a thread."""
        thread = Thread(self, settings, time())
        self.threads[thread.id] = thread
        return thread

    def thread(self, text: Any, api: str = "v2", missing: str | None = None) -> Thread:
        """Find a loaded thread by its id; refused in the server's words when there is none."""
        error = uuid_error(text)
        if error is not None:
            raise Refused(("invalid thread id: " if api == "v2" else "Invalid request: ") + error)
        thread = self.threads.get(text.lower())
        if thread is None or not thread.loaded:
            word = "thread" if api == "v2" else "conversation"
            raise Refused(f"{missing or word + ' not found:'} {text}")
        return thread

    def listen(self, thread: Thread, api: str) -> str:
        """Attach a listener; return the subscription's id."""
        subscription = uuid4()
        thread.listen(subscription, api)
        return subscription

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return time()

    def close(self) -> None:
        """Close the ledger."""
        self.model.close()


def serde_name(value: Any) -> str:
    """Name a value as Codex's JSON reader does in its messages."""
    if type(value) is dict:
        return "map"
    if type(value) is list:
        return "sequence"
    if value is None:
        return "null"
    from harness.protocol.refusals import _serde_name

    return _serde_name(value)
