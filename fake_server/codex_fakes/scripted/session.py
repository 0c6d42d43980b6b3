"""Handle the messages of a client of the scripted fake: requests, notifications, and replies to the fake's own requests."""

from __future__ import annotations

from time import monotonic, time

from codex_fakes.scripted.state.config_file import ConfigFile
from codex_fakes.scripted.state.form import misread
from codex_fakes.scripted.state.ids import uuid4, uuid_error, with_hyphens
from codex_fakes.scripted.state.model import Model
from codex_fakes.scripted.state.refused import Refused
from codex_fakes.scripted.state.settings import Settings, absolute, merged, put, without_nulls
from codex_fakes.scripted.state.thread import Thread
from codex_fakes.scripted.state.waits import Gap, Sleep, Ticket
from codex_fakes.stdio.loop import Ended, write_out
from codex_replay.core.wire.jsonrpc import kind
from codex_replay.protocol.data_tables import load
from codex_replay.protocol.turn.frames import fill, load_table
from codex_replay.protocol.versions import DEFAULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Method
    from codex_fakes.scripted.state.protocols import Server
    from codex_fakes.scripted.state.store import Store


#: Seconds in which what the client sends after a late reply overtakes it, as in the real server.
OVERTAKEN = 0.02


class Session:
    """The state of the scripted fake: all threads of the process, the model, and the pending requests to the client."""

    def __init__(
        self,
        server: Server,
        handler_of: Callable[[str], Method | None],
        script: str | None,
        ledger: str | None,
        home: str,
        overrides: list[tuple[str, str]],
        cwd: str,
        text: bytes | None = None,
        version: str = DEFAULT,
        store: Store | None = None,
    ) -> None:
        self.version = version
        self.server = server
        self._handler_of = handler_of
        self.table = load_table(version)
        self.store = store
        self.model = Model(script, ledger, text, store)
        self.model.load()
        self.home = home
        self.cwd = cwd
        self.file = ConfigFile(home, overrides, version)
        self.config, self.user_config, self.flags = self.file.config, self.file.user, self.file.flags
        self.file.look(Settings(self.config, cwd, home, self.table["settings"], version))
        self.threads: dict[str, Thread] = {}
        self._timers: list[tuple[Sleep, Callable[[], None]]] = []  # what happens at a time, without the running turns
        self._held = 0.0  # the end of the last gap before output (monotonic seconds)
        self._left: list[Thread] = []  # turns of threads that were loaded again in mid-turn
        self.rules: list[list[str]] = []  # what amendments have allowed
        self.processes: dict[str, Any] = {}  # the commands of command/exec that run, by the client's id
        self.skills: dict[str, bool] = {}  # what skills/config/write has switched on or off
        self.login: tuple[str, str] | None = None  # a login by ChatGPT that is under way: its id, and "v1" or "v2"
        self.account: dict[str, Any] | None = None
        if self.model.account is not None:
            from codex_fakes.scripted.state.account import account_of

            self.account = account_of(self.model.account)
        self.failed = False
        self._clock: bool = self.table["traits"].get("clock", False)  # whether notifications say when they were sent
        self._requests = 0
        self._tickets: dict[int, Ticket] = {}
        if store is not None:
            self._refresh()

    # -- in -----------------------------------------------------------------------------------------------------------

    def receive(self, message: dict[str, Any]) -> None:
        """Process a request or a reply of the client."""
        if kind(message) != "request":
            ticket = self._tickets.pop(message["id"], None) if type(message["id"]) is int else None
            self._settle()
            if ticket is not None:  # else a reply to nothing: the real server is silent
                ticket.reply = message
                self._timers.append((Gap(OVERTAKEN, self.server), ticket.take_late))
            return
        if message["method"] not in ("turn/interrupt", "interruptConversation"):
            self._settle()
        try:
            self._request(message)
        except Refused as refused:
            self.server.answer_error(message["id"], refused.error())
        except Ended:
            raise  # a fault ends the server here
        except Exception as error:
            # A form without a table; the real server continues, so the fake must, too.
            self.failed = True
            unread = Refused(f"Invalid request: fake-codex cannot read the params of {message['method']}: {error}")
            write_out(f"fake-codex: {unread}")
            self.server.answer_error(message["id"], unread.error())

    def _request(self, message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params")
        params = {} if params is None else params
        if (wrong := misread({"method": method, "params": params}, self.version)) is not None:
            raise Refused(wrong)
        if params == []:
            params = {}  # every member may be absent
        if type(params) is list:
            raise Refused(f"Invalid request: fake-codex accepts the params of {method} only as an object.")
        for name in ("threadId", "conversationId"):
            if isinstance(params.get(name), str) and uuid_error(params[name]) is None:
                params = {**params, name: with_hyphens(params[name])}
        if "experimental" in self.answers:
            self._require_experimental(method, params)
        if self.store is not None and (method.startswith("thread/") or "onversation" in method):
            self._refresh()
        handler = self._handler_of(method)
        scripted = None if method in self.answers.get("handled", ()) else self.model.answer(method, params)
        if scripted is not None:
            self._scripted(message["id"], method, scripted)
        elif handler is not None:
            handler(self, message["id"], params)
        else:
            answer = self.answers["results"].get(method)
            if answer is None:
                self.failed = True
                hint = "add the method's answer to the script (docs/scripts.md)"
                raise Refused(f"fake-codex does not have {method} of Codex {self.version}: {hint}")
            if "error" in answer:
                raise Refused(answer["error"])
            self.answer(message["id"], answer["result"])

    def _require_experimental(self, method: str, params: dict[str, Any]) -> None:
        """Refuse a request that needs the capability experimentalApi, if the client has not declared the capability."""
        if self.server.experimental:
            return
        needs = self.answers["experimental"]
        names = [f"{method}.{name}" for name in needs["fields"].get(method, ()) if params.get(name) is not None]
        for what in [method] if method in needs["methods"] else names:
            raise Refused(f"{what} requires experimentalApi capability")

    def _scripted(self, request_id: Any, method: str, answer: dict[str, Any]) -> None:
        """Send the answer that the script contains for a method."""
        if "error" in answer:
            error = answer["error"]
            if isinstance(error, str):
                raise Refused(error)
            raise Refused(error.get("message", ""), error.get("code", -32600), error.get("data"))
        result = answer["result"]
        if method == "skills/list" and self.skills:
            self._switch(result)
        self.answer(request_id, result)

    def _switch(self, result: Any) -> None:
        """Apply the settings that the client made with skills/config/write to the result of skills/list."""
        for entry in result.get("data", []) if isinstance(result, dict) else []:
            for skill in entry.get("skills", []):
                skill["enabled"] = self.skills.get(skill.get("path"), skill.get("enabled", True))

    @property
    def answers(self) -> dict[str, Any]:
        """The table of constant answers and of the required members of each request."""
        answers: dict[str, Any] = load("answers", self.version)
        return answers

    # -- out ----------------------------------------------------------------------------------------------------------

    def answer(self, request_id: Any, result: Any) -> None:
        """Answer a request of the client."""
        self.server.write_out({"id": request_id, "result": result})

    def send(self, frame: dict[str, Any]) -> None:
        """Send a notification."""
        if frame["method"] in self.server.unwanted:
            return
        if self._clock:
            frame["emittedAtMs"] = int(time() * 1000)
        self.server.write_out(frame)

    def ask(self, frame: dict[str, Any], ticket: Ticket) -> None:
        """Send a request to the client. The client's reply is stored in `ticket`, which a turn can wait for."""
        frame["id"] = self._requests
        ticket.asked, ticket.number, ticket.frame = True, self._requests, frame
        self._tickets[self._requests] = ticket
        self._requests += 1
        self.server.write_out(frame)

    def ask_again(self, thread: Thread) -> None:
        """Send the open requests of a thread's turn a second time, to the client that has resumed the thread."""
        for ticket in self._tickets.values() if thread.waits is not None else ():
            if ticket.frame["params"].get("threadId") == thread.id:
                self.server.write_out(dict(ticket.frame))

    def delay_output(self, name: str) -> None:
        """Delay the next output by a pause that the real server makes.

        `name` is the name of the pause under "gaps" in turn.json.
        """
        seconds = self._duration(name)
        self._held = monotonic() + seconds
        self.server.delay_output(seconds)

    def gap(self, name: str) -> Iterator[Gap]:
        """Yield a pause that the real server makes, during which a client can steer or interrupt the turn.

        At the pace "burst" there is no pause.
        """
        if seconds := self._duration(name):
            yield Gap(seconds + max(0.0, self._held - monotonic()), self.server)

    def _duration(self, name: str) -> float:
        seconds: float = self.table["gaps"][name] / 1000
        if name == "begin":
            return seconds * max(self.server.gaps, 1.0) if self.server.gaps else 0.0  # a client that does not wait must be seen
        return seconds * self.server.gaps

    # -- time ---------------------------------------------------------------------------------------------------------

    @property
    def may_advance(self) -> bool:
        """Return True if a turn can continue now."""
        return any(wait.ready() for wait, _ in self._timers) or any(
            thread.waits is not None and thread.waits.ready() for thread in self._running()
        )

    @property
    def busy(self) -> bool:
        """Return True while a turn of any thread runs."""
        return bool(self._running())

    def _running(self) -> list[Thread]:
        self._left = [thread for thread in self._left if thread.waits is not None]
        return [thread for thread in (*self._left, *self.threads.values()) if thread.waits is not None]

    def _settle(self) -> None:
        """Apply the interrupts that have arrived so far."""
        for thread in self._running():
            thread.settle()

    def leave(self, thread: Thread) -> Thread:
        """Return a second copy of a thread that is loaded a second time during a turn.

        The running turn continues in the old copy `thread`; new requests go to the new copy.
        """
        self._left.append(thread)
        again = self.threads[thread.id] = thread.idle_copy()
        return again

    def advance(self, quiet: bool = True) -> None:
        """Let all turns continue that need not wait. `quiet` is True if no message from the client is waiting at the moment."""
        if quiet:
            timers = [(wait.ready(), wait, act) for wait, act in self._timers]
            self._timers = [(wait, act) for ready, wait, act in timers if not ready]
            for ready, _, act in timers:
                try:
                    if ready:
                        act()
                except Ended:
                    raise  # a fault ends the server here
                except Exception as error:
                    self._report_failure("a timed action", error)
        for thread in self._running():
            try:
                thread.step(quiet)
            except Ended:
                raise  # a fault ends the server here
            except Exception as error:
                thread.end()
                self._report_failure(f"the turn of thread {thread.id}", error)

    def _report_failure(self, what: str, error: Exception) -> None:
        """Report a failure of the fake on stderr and in the exit status: no input ends the process."""
        self.failed = True
        write_out(f"fake-codex: {what} stops, because fake-codex failed: {error!r}")

    def next_due(self) -> float | None:
        """Return the time at which the next pause of the script ends."""
        times = [thread.waits.until for thread in self._running() if isinstance(thread.waits, Sleep)]
        times += [wait.until for wait, _ in self._timers]
        return min(times) if times else None

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Call a function after some seconds, whether a turn runs or not."""
        self._timers.append((Sleep(seconds), act))

    # -- the state folder ---------------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        """Read the threads and rules that other processes have stored."""
        if self.store is not None:
            self.store.refresh(self.threads, self._kept_thread)
            self.rules = self.store.rules()

    def _kept_thread(self, meta: dict[str, Any]) -> Thread:
        """Return a thread that another process has stored, without loading it."""
        settings = Settings(self.config, meta["cwd"], self.home, self.table["settings"], self.version)
        thread = Thread(self, settings, meta["created"])
        thread.id, thread.loaded = meta["id"], False
        return thread

    def save(self) -> None:
        """Store the changes of all threads in the state folder."""
        if self.store is not None:
            self.store.save(self.threads)

    # -- threads ------------------------------------------------------------------------------------------------------

    def settings(self, params: dict[str, Any], api: str) -> Settings:
        """Return the settings of a new thread. The `config` in the request overrides config.toml."""
        if self.file.refusal is not None:
            raise self._config_refused(self.file.refusal)
        config = merged(self.config, self.given_config(params))
        cwd = self.cwd if params.get("cwd") is None else absolute(params["cwd"], self.cwd)
        settings = Settings(config, cwd, self.home, self.table["settings"], self.version, params.get("profile"))
        settings.change({**params, "cwd": None}, api)
        if (wrong := settings.wrong()) is not None:
            raise self._config_refused(wrong)
        return settings

    def given_config(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the `config` of a request as nested tables. Versions after 0.92 read null as an empty text."""
        given: dict[str, Any] = {}
        for key, value in (params.get("config") or {}).items():
            put(given, key, without_nulls(value) if self._clock else value)
        return given

    def _config_refused(self, why: str) -> Refused:
        return Refused(fill(self.table["sentences"]["config-refused"], {"why": why}))

    def write_config(self, user: dict[str, Any]) -> None:
        """Replace the user's layer of the configuration.

        Options on the command line still take precedence over the user's layer.
        """
        self.user_config, self.config = user, merged(user, self.flags)

    def new_thread(self, settings: Settings) -> Thread:
        """Make a thread."""
        thread = Thread(self, settings, time())
        git = self.model.git
        if git.get("sha"):
            thread.git = {name: git.get(name) for name in ("sha", "branch", "originUrl")}
        thread.open()
        self.threads[thread.id] = thread
        return thread

    def thread(self, text: Any, api: str = "v2", missing: str | None = None) -> Thread:
        """Return the loaded thread with the given id.

        If the thread is not loaded, refuse the request with the real server's error.
        """
        error = uuid_error(text)
        if error is not None:
            raise Refused(("invalid thread id: " if api == "v2" else "Invalid request: ") + error)
        thread = self.threads.get(text)
        if thread is None or not thread.loaded:
            word = "thread" if api == "v2" else "conversation"
            raise Refused(f"{missing or word + ' not found:'} {text}")
        return thread

    def listen(self, thread: Thread, api: str, raw: bool = False) -> str:
        """Attach a listener of the client to a thread. Return the id of the listener's subscription."""
        subscription = uuid4()
        thread.listen(subscription, api, raw)
        return subscription

    @property
    def client_name(self) -> str:
        """The client's name, from its initialize request."""
        return self.server.user_agent.partition("/")[0]

    def close(self) -> None:
        """Close the ledger."""
        self.model.close()
