"""The fixture `codex_backend`: a fake Responses backend for one test, which records the requests of the client."""

from __future__ import annotations

import re
from itertools import count
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_replay.plugin.base.ledger import Request, request_of
from codex_replay.plugin.user_fixtures.callable_model import CallableModel
from codex_replay.protocol.script.build import ScriptBuilder, TurnBuilder
from codex_replay.protocol.script.script import BadScript
from codex_replay.shell.files.script_file import read_script

if TYPE_CHECKING:
    from collections.abc import Callable

    from codex_replay.protocol.recordings.conversation import Conversation
    from codex_replay.shell.http.backend_process import BackendSession


_NUMBERS = count(1)


def readable_name(test: str) -> str:
    """Return a unique name for the session of a test; the name is readable in a URL."""
    return f"{next(_NUMBERS)}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', test).strip('-')[:80]}"


def _values(script: Any) -> Any:
    """Convert a script of any allowed type to JSON values."""
    if isinstance(script, str) and not script.endswith((".json", ".yaml", ".yml")):
        raise BadScript(f"The script is the text {script!r}. For a reply with this text, write a list: [{script!r}].")
    if isinstance(script, str | PathLike):
        return read_script(Path(script))
    if isinstance(script, ScriptBuilder):
        return script.as_json()
    turns = [script] if isinstance(script, TurnBuilder) else script
    return [turn.as_json() if isinstance(turn, TurnBuilder) else turn for turn in turns] if isinstance(turns, list) else turns


class CodexBackend:
    """A fake Responses backend for one test, with its own script, requests, tokens and gates.

    `url` is the prefix to give to a client: `{url}/v1` is an API base URL, `{url}/backend-api/codex` is the base URL of ChatGPT,
    and `{url}/oauth/token` is the token URL.
    """

    #: The first line of the failure of a test whose client differs, and how to allow the difference.
    headline = (
        "The client differs from the script or the recording of codex_backend (to allow unused turns or missing requests, add "
        "partial=True; to allow any difference, set codex_backend.lenient = True)"
    )

    def __init__(self, session: BackendSession) -> None:
        self.lenient = False
        self.url = session.url
        self._session = session
        self._kept: list[Request] | None = None
        self._partial = False
        self._recorded = False
        self._function: CallableModel | None = None

    def script(
        self,
        script: ScriptBuilder | TurnBuilder | PathLike[str] | str | list[Any] | dict[str, Any] | Callable[[Request], Any],
        *,
        partial: bool = False,
    ) -> None:
        """Set the script of the model; raises `BackendError` or `BadScript` with a sentence for an invalid script.

        The script is one of: JSON values, a `ScriptBuilder`, a `TurnBuilder`, a list of turns, the path of a JSON or YAML
        file, or a function. A script function gets each request, and returns the reply or yields its items. The reply of a
        script function is a text, an item or a `TurnBuilder`; the function may be asynchronous. At the end of the test, the
        test fails if no request has used a turn of the script, unless `partial` is True.
        """
        __tracebackhide__ = True
        if self._function is not None:
            self._function.end()
        self._function = None
        self._partial = partial
        if callable(script):
            self._session.script({"turns": [], "otherwise": "ask"})
            self._function = CallableModel(self._session, script)
        else:
            self._session.script(_values(script))

    def cassette(self, path: PathLike[str], *, partial: bool = False) -> None:
        """Answer requests from a recording, or from a folder of recordings.

        Raises `BackendError` with a sentence if a recording cannot be played.

        At the end of the test, the test fails if the client has not sent a recorded request, unless `partial` is True.
        """
        self._session.script([])
        self._session.cassette(Path(path))
        self._recorded = not partial

    @property
    def requests(self) -> list[Request]:
        """Every request that the backend has received so far, in order."""
        return self._kept if self._kept is not None else [request_of(entry, self.url) for entry in self._session.ledger()]

    @property
    def conversation(self) -> Conversation:
        """The requests so far, and the statuses of the answers, as frames for `normalise`, `diff` and snapshots."""
        from codex_replay.protocol.recordings.conversation import http_conversation

        return http_conversation((one.payload, one.status) for one in self.requests)

    def close(self) -> None:
        """Stop the backend; the recorded requests remain readable."""
        self._kept = self.requests
        if self._function is not None:
            self._function.end()
        self._session.close()

    def wait(self, count: int, seconds: float = 10.0) -> list[Request]:
        """Wait until the backend has answered `count` requests; return all answered requests.

        Raises AssertionError on a timeout.
        """
        __tracebackhide__ = True
        found = [request_of(entry, self.url) for entry in self._session.ledger(count, seconds)]
        if len(found) < count:
            raise AssertionError(f"There were {len(found)} requests within {seconds:g} s, not {count}.")
        return found

    @property
    def unused_turns(self) -> list[int]:
        """The indexes of the script's turns that no request has used."""
        return self._session.unused_turns()

    @property
    def problems(self) -> list[str]:
        """One sentence for each request that was refused because of a rule, an expectation or the script."""
        return self._session.problems()

    @property
    def notes(self) -> list[str]:
        """One sentence for each path whose WebSocket was refused, because the script does not accept any."""
        paths = dict.fromkeys(request.path for request in self.requests if request.status == 426 and request.method == "GET")
        allow = 'a script accepts it with "websocket": "on"'
        return [f"the backend refused a WebSocket to {path} with 426; {allow}" for path in paths]

    @property
    def complaints(self) -> list[str]:
        """Return the errors that fail the test at its end (refused requests and unused turns), or an empty list if `lenient` is
        set.
        """
        if self.lenient:
            return []
        found = self.problems
        unused = [] if self._partial else self.unused_turns
        if unused:
            found = [*found, f"No request used {', '.join(f'turns[{i}]' for i in unused)} of the script."]
        if self._recorded:
            left = [f"frame {each['frame']} of {each['cassette']}" for each in self._session.unused_frames()]
            found += [f"The client never sent the request in {one}." for one in left]
        return found

    def wait_at_gate(self, gate: str, seconds: float = 10.0) -> bool:
        """Wait until an answer of the backend has reached the given gate of the script, and waits there.

        Return False if no answer has reached the gate after `seconds`.
        """
        return self._session.wait_at_gate(gate, seconds)

    def release(self, gate: str) -> None:
        """Open a gate."""
        self._session.release(gate)
