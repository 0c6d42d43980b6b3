"""The model of the scripted fake: choose the turn that answers, run its steps, and keep the ledger of requests.

The script has the format of the backend's scripts (`codex_replay.protocol.script.script`) and is read by the same rules, so
that the fake backend and the fake Codex can use the same file. Large modules are imported at their first use, after the
client has got its first answer.
"""

from __future__ import annotations

from codex_replay.core.wire.json_text import NotJson, dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from codex_fakes.scripted.state.position import Position
    from codex_fakes.scripted.state.store import Store
    from codex_replay.protocol.script.choose import Choice
    from codex_replay.protocol.script.script import Script, Turn

GREETING = "Hello from fake-codex."


class Reply:
    """The result of one request to the model: either `failure` (a cause in the form that `turn.failure` needs), or `acts` and the
    results of the calls.

    `limits` are the rate limits in the headers of the answer (`turn.limits.limits_of`). `before` are the pauses before the
    answer. `log` is the error that the real binary logs for the request, or "".
    """

    log: str | None = None

    def __init__(
        self,
        acts: list[Any],
        results: dict[str, Any],
        failure: dict[str, Any] | None = None,
        limits: dict[str, Any] | None = None,
        before: list[tuple[str, Any]] | None = None,
    ) -> None:
        self.acts, self.results, self.failure, self.limits, self.before = acts, results, failure, limits or {}, before or []


class Model:
    """The scripted model of the fake.

    For each request, the model chooses a turn of the script, and writes a line to the ledger (the list of requests).

    `path` is the path of the script; if it is None, every request gets the same greeting. `text` is the content of the
    script, if it was already read, because a pipe can be read only once. `ledger` is the file that gets one line of JSON
    for each request. Raises `ValueError` with a sentence if the ledger cannot be written. The method `load` raises
    `ValueError` for an invalid script. The function `log` gets the lines that the real binary logs for failed requests.
    """

    log: Callable[[str], None] | None = None

    def __init__(
        self, path: str | None, ledger: str | None = None, text: bytes | None = None, store: Store | None = None
    ) -> None:
        self._path, self._text = path, text
        self._position: Position | None = None
        self._script: Script | None = None
        self._loaded = path is None
        self._turns: Choice | None = None
        self._answered: dict[str, set[int]] = {}
        self._defaults = 0
        self._asked = 0
        try:
            # Processes with one state folder write one ledger.
            self._ledger = open(ledger, "wb" if store is None else "ab", 0) if ledger else None  # noqa: SIM115 - closed in close()
        except OSError as error:
            raise ValueError(
                f"the ledger {ledger} cannot be written ({error.strerror}); choose another file for FAKE_CODEX_LEDGER."
            ) from None
        if store is not None:
            self._share(store)

    def _share(self, store: Store) -> None:
        """Share the position in the script and the ledger with the other processes that use the same state folder."""
        from codex_fakes.scripted.state.position import Position

        if self._path is not None and self._text is None:
            from codex_fakes.model.script_file import read_script

            self._text = read_script(self._path)
        self._position = Position(self, store, self._text)
        with self._position:
            if self._ledger is not None and not self._asked:
                self._ledger.truncate(0)

    def position(self) -> dict[str, Any]:
        """Return the position in the script in the form that `go_on` accepts."""
        return {
            "asked": self._asked,
            "defaults": self._defaults,
            "answered": {method: sorted(used) for method, used in self._answered.items()},
            "used": {str(index): uses for index, uses in self._turns.used.items()} if self._turns is not None else {},
        }

    def go_on(self, position: dict[str, Any]) -> None:
        """Continue from a stored position in the script. An empty position is the beginning of the script."""
        self._asked, self._defaults = int(position.get("asked", 0)), int(position.get("defaults", 0))
        self._answered = {method: set(used) for method, used in position.get("answered", {}).items()}
        if self._turns is not None:
            self._turns.go_on({int(index): int(uses) for index, uses in position.get("used", {}).items()})

    def load(self) -> None:
        """Read the script, unless it was already read."""
        if self._loaded or self._path is None:
            return
        from codex_replay.protocol.script.choose import Choice
        from codex_replay.protocol.script.hints import lone_surrogate
        from codex_replay.protocol.script.script import parse

        if self._text is None:
            from codex_fakes.model.script_file import read_script

            self._text = read_script(self._path)
        try:
            value = loads(self._text)
            self._script = parse(value)
            if b"\\ud" in self._text.lower() and (where := lone_surrogate(value, "turns" * isinstance(value, list))):
                raise ValueError(f"{where} has half of a surrogate pair, which is not valid in UTF-8. Write the whole character.")
            self._check_faults(self._script)
            if self._script.otherwise == "ask":
                raise ValueError('"otherwise" is "ask", which only the fake backend supports. Use "miss" or "default"')
            self._turns = Choice(self._script.turns)
        except ValueError as error:
            raise ValueError(f"the script {self._path} cannot be used: {error}") from None
        self._loaded = True

    @staticmethod
    def _check_faults(script: Script) -> None:
        if any(turn.fault is not None for turn in script.turns):
            from codex_fakes.model.faults import fault_error

            for i, turn in enumerate(script.turns):
                if wrong := fault_error(turn.fault, f"turns[{i}]"):
                    raise ValueError(wrong)

    # -- the machine in the script (docs/fake-codex.md) --------------------------------------------------------

    @property
    def git(self) -> dict[str, Any]:
        """The git repository that the script gives the threads: sha, branch, originUrl, mergeBase.

        The result is empty if the script has no repository.
        """
        return dict(self._script.git) if self._script is not None else {}

    @property
    def account(self) -> Any:
        """The account in the script, with which the server starts."""
        return self._script.account if self._script is not None else None

    @property
    def rate_limits(self) -> Any:
        """The rate limits in the script."""
        return self._script.rate_limits if self._script is not None else None

    def answer(self, method: str, params: Any) -> dict[str, Any] | None:
        """Return the script's answer to a request of the client: the first unused answer whose `params` are part of the params of
        the request.

        The answers in a list are used one by one; a single object answers every request.
        """
        given = self._script.answers.get(method) if self._script is not None else None
        if given is None:
            return None
        if self._position is None:
            return self._answer(method, params, given)
        with self._position:
            return self._answer(method, params, given)

    def _answer(self, method: str, params: Any, given: Any) -> dict[str, Any] | None:
        used = self._answered.setdefault(method, set())
        for i, answer in enumerate(given if isinstance(given, list) else [given]):
            wanted = answer.get("params")
            wanted = wanted if isinstance(wanted, dict) else {}
            if i not in used and isinstance(params, dict) and all(params.get(key) == value for key, value in wanted.items()):
                if isinstance(given, list):
                    used.add(i)
                return dict(answer)
        return None

    def ask(self, body: dict[str, Any], about: dict[str, Any], url: str) -> Reply:
        """Choose the turn for a request to the model, write a line to the ledger, and return the reply.

        `about` names the thread and the turn of the request.
        """
        self.load()
        if self._position is None:
            return self._ask(body, about, url)
        with self._position:
            return self._ask(body, about, url)

    def _ask(self, body: dict[str, Any], about: dict[str, Any], url: str) -> Reply:
        if (refused := self._unauthorized()) is not None:
            return Reply([], {}, {"break": refused, "url": url})
        index, turn, label, sentence = self._choose(body)
        status, reply = self._reply(turn, label, body, sentence, url)
        self._asked += 1
        if self._ledger is not None:
            entry = {
                "n": self._asked,
                "method": "POST",
                "path": "/v1/responses",
                **about,
                "answer": "turn" if index is not None else "miss" if sentence else "default",
                "turn_of_script": index,
                "status": status,
                "sentence": sentence,
                "body": body,
            }
            self._ledger.write(dumps(entry) + b"\n")
        return reply

    def _unauthorized(self) -> str | None:
        """Return the reason why a backend with the given script refuses the client (tokens that have expired for good), or
        None.
        """
        auth = self._script.auth if self._script is not None else {}
        account = self._script.account if self._script is not None else None
        if account == "chatgpt" or (isinstance(account, dict) and account.get("type") == "chatgpt"):
            if isinstance(account, dict) and account.get("last_refresh", "") is None:
                return "no-tokens"
            refresh = auth.get("refresh", "valid")
            if auth.get("access", "valid") != "valid" and refresh != "valid":
                return f"refresh-{refresh}"
        return None

    def _choose(self, body: dict[str, Any]) -> tuple[int | None, Turn | None, str, str | None]:
        """Choose the turn of the script for a request to the model.

        Return the index of the turn (None for the default turn), the turn (None if no turn matches), the label for the ids
        in the reply, and the reason if no turn matches.

        A request of the scripted fake has no HTTP headers, so expectations on headers are ignored.
        """
        from codex_replay.protocol.script.expect import mismatch
        from codex_replay.protocol.script.script import Turn

        if self._script is None or self._turns is None:
            self._defaults += 1
            return None, Turn(items=({"type": "text", "text": GREETING},)), f"d{self._defaults}", None
        chosen = self._turns.choose(body, None)
        if not isinstance(chosen, str):
            index, turn, label = chosen
            if turn.expect and (why := mismatch(turn.expect, body, None)):
                return index, None, label, f"turns[{index}] is the turn for this request, but its expectation fails. {why}"
            return index, turn, label, None
        if self._script.otherwise == "default":
            from codex_fakes.model.default import default_turn

            self._defaults += 1
            return None, default_turn(body), f"d{self._defaults}", None
        return None, None, "", chosen

    def _reply(
        self, turn: Turn | None, label: str, body: dict[str, Any], sentence: str | None, url: str
    ) -> tuple[int | None, Reply]:
        if turn is None:
            code = "replay_expect" if label else "replay_miss"
            error = {"message": sentence, "type": "server_error", "param": None, "code": code}
            from codex_fakes.scripted.state.error_answers import log_of, status_cause

            text = dumps({"error": error}).decode()
            missed = Reply([], {}, status_cause(501, text, url))
            missed.log = log_of(501, text)
            return 501, missed
        if turn.fault is not None:
            from codex_fakes.model.faults import BEFORE_ANSWER, as_status

            if turn.fault["name"] in BEFORE_ANSWER:
                refused = Reply([], {}, {"break": "refused", "url": url})
                refused.log = f"network error: error sending request for url ({url})"
                return None, refused
            turn = as_status(turn)
        limits: dict[str, Any] | None = None
        if turn.headers:
            from codex_replay.protocol.turn.limits import limits_of

            limits = limits_of({name.lower(): value for name, value in turn.headers})
        if turn.status != 200:
            from codex_fakes.scripted.state.error_answers import answered, log_of, text_of

            acts, cause = answered(turn, url)
            reply = Reply(acts, {}, cause, limits, _before(turn))
            reply.log = log_of(turn.status, text_of(turn)) if cause is not None else None
            return turn.status, reply
        return 200, Reply(_acts(turn, body, label), _results(turn, label), limits=limits, before=_before(turn))

    def close(self) -> None:
        """Close the ledger."""
        if self._ledger is not None:
            self._ledger.close()


def _results(turn: Turn, label: str) -> dict[str, Any]:
    """Return a dictionary from the id of each call to the result of the call in the script (the `result` of its item)."""
    from codex_replay.protocol.script.keys import OUTPUT_KINDS

    results: dict[str, Any] = {}
    place = 0
    for item in turn.items:
        if item["type"] in ("function_call", "custom_tool_call") and item.get("result") is not None:
            results[item.get("call_id") or f"call_{label}_{place}"] = item["result"]
        if item["type"] == "item" and item.get("result") is not None:
            results[str(item["item"].get("call_id"))] = item["result"]
        place += item["type"] in OUTPUT_KINDS
    return results


def _before(turn: Turn) -> list[tuple[str, Any]]:
    """Return the delays and gates before the headers of the answer."""
    waits: list[tuple[str, Any]] = [("wait", turn.first_delay_ms)] if turn.first_delay_ms else []
    return waits if turn.gate is None else [*waits, ("gate", turn.gate)]


def _acts(turn: Turn, body: dict[str, Any], label: str) -> list[Any]:
    """Return the reply as a list of events (dicts) and acts: ("wait", ms), ("gate", name), ("end", how)."""
    from codex_fakes.model.faults import Cut, Idle, Reset, apply
    from codex_replay.protocol.responses.items import reply
    from codex_replay.protocol.responses.steps import Gate, Raw, Send, Wait, event_bytes

    steps = apply(turn.fault, reply(turn, body, label))
    acts: list[Any] = []
    decoder = None
    if any(isinstance(step, Raw) for step in steps):
        from codex_replay.core.wire.sse import Decoder

        decoder = Decoder()
    for step in steps:
        if isinstance(step, Send | Raw):
            if decoder is None:
                acts.append(step.event)  # type: ignore[union-attr]
            else:
                acts += _decoded(decoder.feed(event_bytes(step.event) if isinstance(step, Send) else step.data))
            if turn.delay_ms:
                acts.append(("wait", turn.delay_ms))
        elif isinstance(step, Wait):
            acts.append(("wait", step.ms))
        elif isinstance(step, Gate):
            acts.append(("gate", step.name))
        elif isinstance(step, Cut | Reset):
            return [*acts, ("end", "cut")]
        elif isinstance(step, Idle):
            return [*acts, ("end", "idle")]
    return acts


def _decoded(events: Any) -> list[Any]:
    """Return the JSON objects in the data of server-sent events. Data that is not a JSON object is ignored, as in Codex."""
    found = []
    for event in events:
        try:
            value = loads(event.data) if event.data is not None else None
        except NotJson:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found
