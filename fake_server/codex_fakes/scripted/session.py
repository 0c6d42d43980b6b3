"""What the scripted fake does with each message: the table of methods, the threads, the replies to its own requests."""

from __future__ import annotations

from time import time

from fake_server import scripted_methods
from fake_server.scripted_form import misshapen
from fake_server.scripted_ids import uuid4, uuid_error
from fake_server.scripted_model import Model
from fake_server.scripted_refused import Refused
from fake_server.scripted_settings import Settings, read_config
from fake_server.scripted_thread import Thread
from fake_server.scripted_waits import Sleep, Ticket
from fake_server.stdio import say
from harness.core.jsonrpc import kind
from harness.core.jsontext import loads
from harness.protocol.refusals import load_methods
from harness.protocol.schema_files import table
from harness.protocol.turn import load_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from fake_server.scripted_methods import Method

    class Server(Protocol):
        """Who hears what the threads say."""

        user_agent: str

        def say(self, frame: dict[str, Any]) -> None:
            """Say a frame."""

        def answer_error(self, request_id: Any, error: dict[str, Any]) -> None:
            """Refuse a request."""


METHODS = {**scripted_methods.METHODS}
#: Modules of methods that few clients call, each loaded at the first of its own; so is v1, whose methods have no slash.
_SELDOM = {
    "review/start": "review", "command/exec": "machine", "execOneOffCommand": "machine", "gitDiffToRemote": "machine",
    "skills/list": "machine", "skills/config/write": "machine", "mcpServer/oauth/login": "machine", "config/read": "config",
    "config/value/write": "config", "config/batchWrite": "config", "getUserSavedConfig": "config", "setDefaultModel": "config",
    "account/read": "account", "account/rateLimits/read": "account", "account/login/start": "account",
    "account/login/cancel": "account", "account/logout": "account", "getAuthStatus": "account", "userInfo": "account",
    "loginApiKey": "account", "loginChatGpt": "account", "cancelLoginChatGpt": "account", "logoutChatGpt": "account",
}  # fmt: skip


def handler_of(method: str) -> Method | None:
    """Return the function of a method; None for one whose answer is constant (answers.json)."""
    if method not in METHODS and (method in _SELDOM or "/" not in method):
        name = _SELDOM.get(method, "v1")
        if name == "v1":
            from fake_server import scripted_methods_v1 as module
        elif name == "review":
            from fake_server import scripted_review as module  # type: ignore[no-redef]
        elif name == "machine":
            from fake_server import scripted_machine as module  # type: ignore[no-redef]
        elif name == "config":
            from fake_server import scripted_config as module  # type: ignore[no-redef]
        else:
            from fake_server import scripted_account as module  # type: ignore[no-redef]
        METHODS.update(module.METHODS)
    return METHODS.get(method)


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
        text: bytes | None = None,
    ) -> None:
        self.server = server
        self.table = load_table()
        self.model = Model(script, ledger, text)
        self.model.load()
        self.home = home
        self.cwd = cwd
        self.config = read_config(home, overrides)
        self.threads: dict[str, Thread] = {}
        self.rules: list[list[str]] = []  # what amendments have allowed
        self.skills: dict[str, bool] = {}  # what skills/config/write has switched on or off
        self.login: tuple[str, str] | None = None  # a login by ChatGPT that is under way: its id, and "v1" or "v2"
        self.account: dict[str, Any] | None = None
        if self.model.account is not None:
            from fake_server.scripted_account import account_of

            self.account = account_of(self.model.account)
        self.failed = False
        self._requests = 0
        self._tickets: dict[int, Ticket] = {}
        self._answers: dict[str, Any] | None = None
        with open(table("0.92.0", "forms.json"), "rb") as file:
            self._forms: dict[str, Any] = loads(file.read())

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
            self.server.answer_error(message["id"], refused.error())
        except (TypeError, AttributeError, LookupError, ValueError) as error:
            # A form that no table tells; the real server goes on, so this one must.
            self.failed = True
            unread = Refused(f"Invalid request: fake-codex cannot read the params of {message['method']}: {error}")
            say(f"fake-codex: {unread}")
            self.server.answer_error(message["id"], unread.error())

    def _request(self, message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params")
        params = {} if params is None else params
        self._require(method, params)
        if params == []:
            params = {}  # every member may be absent
        if type(params) is list:
            raise Refused(f"Invalid request: fake-codex takes the params of {method} as an object only.")
        scripted = self.model.answer(method, params)
        handler = handler_of(method)
        if scripted is not None:
            self._scripted(message["id"], method, scripted)
        elif handler is not None:
            handler(self, message["id"], params)
        else:
            answer = self.answers["results"][method]
            if "error" in answer:
                raise Refused(answer["error"])
            self.answer(message["id"], answer["result"])

    def _scripted(self, request_id: Any, method: str, answer: dict[str, Any]) -> None:
        """Give the script's own answer to a method."""
        if "error" in answer:
            error = answer["error"]
            if isinstance(error, str):
                raise Refused(error)
            raise Refused(error.get("message", ""), error.get("code", -32600), error.get("data"))
        result = answer["result"]
        if method == "skills/list" and self.skills:
            from fake_server.scripted_machine import with_switches

            result = with_switches(self, result)
        self.answer(request_id, result)

    @property
    def answers(self) -> dict[str, Any]:
        """The table of constant answers, and of what a request must have."""
        if self._answers is None:
            with open(table("0.92.0", "answers.json"), "rb") as file:
                self._answers = loads(file.read())
        return self._answers

    def _require(self, method: str, params: Any) -> None:
        """Refuse params that lack a field or have one of a wrong type, in the server's words."""
        elements = self.answers["elements"].get(method)
        if type(params) is list and elements is not None and len(params) < elements:
            what = f"{load_methods()[method]} with {elements} element{'s' if elements > 1 else ''}"
            raise Refused(f"Invalid request: invalid length {len(params)}, expected {what}")
        if type(params) is not dict:
            return
        wrong = misshapen(params, self._forms["methods"].get(method, {}), self._forms)
        if wrong is not None:
            raise Refused(f"Invalid request: {wrong}")
        for name in self.answers["required"].get(method, ()):
            if name not in params:
                raise Refused(f"Invalid request: missing field `{name}`")

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
        if (wrong := settings.wrong()) is not None:
            raise Refused(f"error deriving config: {wrong}")
        return settings

    def new_thread(self, settings: Settings) -> Thread:
        """Make a thread."""
        thread = Thread(self, settings, time())
        if self.model.git:
            from fake_server.scripted_machine import git_info

            thread.git = git_info(self)
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

    def listen(self, thread: Thread, api: str, raw: bool = False) -> str:
        """Attach a listener; return the subscription's id."""
        subscription = uuid4()
        thread.listen(subscription, api, raw)
        return subscription

    @property
    def client_name(self) -> str:
        """What the client calls itself."""
        return self.server.user_agent.partition("/")[0]

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return time()

    def close(self) -> None:
        """Close the ledger."""
        self.model.close()
