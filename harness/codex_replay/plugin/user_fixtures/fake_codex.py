"""The `fake_codex` and `codex_backend` fixtures, for the tests of any project in which codex-replay is installed.

    def test_my_client(fake_codex: FakeCodex) -> None:
        fake_codex.script(["Hello."])
        assert my_client(fake_codex.command).ask("Hi") == "Hello."
        assert fake_codex.methods == ["initialize", "initialized", "thread/start", "turn/start"]
        assert len(fake_codex.model_calls) == 1

Both fakes are programs of their own, reached over the same pipes and sockets as the real ones; docs/fixtures.md is the page for
their users. A request to the model for which the script has no turn fails the test at its end, unless `lenient` is set; so does
what a client left out of a recording that it was to be told.
"""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.plugin.asked import Request, request_of
from harness.plugin.editor_client import stand_in
from harness.plugin.programs import program
from harness.plugin.replayed import Replays

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.shell.backend_process import BackendProcess, BackendSession

__all__ = ["CodexBackend", "FakeCodex", "ModelCall", "Request"]


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request that the real Codex would have made to its model.

    `body` is the request's body, `turn` the index of the script's turn that answered (None: none did), `sentence` why not.
    """

    body: dict[str, Any]
    turn: int | None
    sentence: str | None

    @property
    def prompts(self) -> list[str]:
        """The texts of the user's messages in the input, oldest first."""
        found = [item for item in self.body.get("input", []) if item.get("type") == "message" and item.get("role") == "user"]
        return ["".join(part.get("text", "") for part in item["content"]) for item in found]

    @property
    def outputs(self) -> dict[str, Any]:
        """The outputs of calls in the input, by call id."""
        items = self.body.get("input", [])
        return {item["call_id"]: item["output"] for item in items if str(item.get("type")).endswith("_output")}


class FakeCodex:
    """A drop-in `codex` whose model says what the test wants; each start in a test begins the script at its first turn.

    `path` is the executable, `command` starts it as an app-server. Settings hold for the starts that come after them.
    """

    def __init__(self, folder: Path, program: str) -> None:
        self.lenient = False
        self.path = str(folder / "codex")
        self.command = [self.path, "app-server"]
        self._folder = folder
        self._program = program
        self._env: dict[str, str] = {}
        self._replays = Replays(program)
        self._partial = False
        self._start = ""
        for name in ("home", "models"):
            (folder / name).mkdir(parents=True)
        self._write()

    # -- before the client starts ------------------------------------------------------------------------------------------

    def script(self, script: object) -> None:
        """Say what the model says: turns, or a whole script (docs/scripts.md). `BadScript` says what is wrong with one."""
        from harness.protocol.script import parse

        parse(script)
        (self._folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
        self._env.pop("FAKE_CODEX_CASSETTE", None)
        self._env["FAKE_CODEX_SCRIPT"] = str(self._folder / "script.json")
        self._write()

    def config(self, **settings: Any) -> None:
        """Say what its config.toml says, as `approval_policy="untrusted"`.

        ValueError for what TOML has no form for, and for a key that Codex does not have: it would be left unread.
        """
        from harness.protocol.known import nearest
        from harness.protocol.tables import load
        from harness.shell.codex.home import toml

        keys: list[str] = load("config-keys")["keys"]
        for key in settings:
            if key not in keys:
                meant = f"; did you mean {near!r}?" if (near := nearest(key, keys)) else ", which leaves it unread."
                raise ValueError(f"{key!r} is no key of the config.toml of Codex 0.92.0{meant}")
        (self._folder / "home" / "config.toml").write_text(toml(settings), encoding="utf-8")

    def cassette(self, path: Path | str, *, partial: bool = False) -> None:
        """Replay a recording, or a directory of them, instead of a script. `CassetteError` for what is none.

        At the end of the test each start must have been sent all that was recorded of the client; `partial` lets it leave out.
        """
        from harness.shell.cassette import CassetteReader
        from harness.shell.lint import find_files

        for file in find_files([str(path)]):
            with CassetteReader(file) as reader:
                for _ in reader:  # a broken line in it is told here
                    pass
        self._partial = partial
        self._env.pop("FAKE_CODEX_SCRIPT", None)
        self._env["FAKE_CODEX_CASSETTE"] = str(Path(path).absolute())
        self._order()
        self._write()

    def fault(self, name: str) -> None:
        """Go wrong in a way that FAKE_CODEX_FAULT knows, as `"dies-in-turn:3"`. ValueError for another."""
        listed = subprocess.run(
            [self._program, "app-server"],
            env={"PATH": "/usr/bin:/bin", "FAKE_CODEX_FAULT": "list"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        ).stdout
        names = [line.split()[0] for line in listed.splitlines()]
        known, _, seed = name.partition(":")
        if known not in names or (seed and not seed.isdecimal()):
            raise ValueError(f"{name!r} is no fault of fake-codex; NAME or NAME:SEED is, and the names are {', '.join(names)}.")
        self._env["FAKE_CODEX_FAULT"] = name
        self._write()

    def race(self, seed: int) -> None:
        """Permute what the real server may permute, by this seed. ValueError with a cassette, which has its own order."""
        self._env["FAKE_CODEX_PACE"] = f"race:{seed}"
        self._order()
        self._write()

    def _order(self) -> None:
        if "FAKE_CODEX_CASSETTE" in self._env and "FAKE_CODEX_PACE" in self._env:
            raise ValueError("race() permutes what a script says, cassette() is said in its own order: a test has one of them.")

    def _write(self) -> None:
        home = str(self._folder / "home")
        env = {"HOME": home, "CODEX_HOME": home, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **self._env}
        tap = [*program("harness.shell.wire_tap"), str(self._folder / "wire.ndjson"), "--", "/bin/sh", "-c"]
        # Each start writes a ledger of its own; making a directory is how two that start at once do not get the same.
        ledger = f'cd "{self._folder}/models"; n=0; until mkdir $n 2>/dev/null; do n=$((n+1)); done; cd "$OLDPWD"'
        start = f'{ledger}; FAKE_CODEX_LEDGER="{self._folder}/models/$n/ledger.ndjson" exec "$0" "$@"'
        if self._replaying:
            start = f": cassette {len(self._replays)}; {start}"  # tells in the ledger of the wire what held for this start
            self._replays.add(start, env, self._partial)
        self._start = start
        stand_in(Path(self.path), [*tap, start, self._program], env)

    @property
    def _replaying(self) -> bool:
        # What a fault does to a recording may well keep the client from going on with it.
        return "FAKE_CODEX_CASSETTE" in self._env and "FAKE_CODEX_FAULT" not in self._env

    # -- afterwards ----------------------------------------------------------------------------------------------------------

    @property
    def sent(self) -> list[Any]:
        """The messages that the client has sent so far, to every start, in order; a line that is no JSON as its text."""
        return [_decoded(entry["got"]) for entry in self.wire() if "got" in entry]

    @property
    def received(self) -> list[Any]:
        """The messages that it has sent to the client so far."""
        return [_decoded(entry["said"]) for entry in self.wire() if "said" in entry]

    @property
    def methods(self) -> list[str]:
        """The methods of the client's requests and notifications so far, in order."""
        return [message["method"] for message in self.sent if isinstance(message, dict) and "method" in message]

    @property
    def starts(self) -> list[list[str]]:
        """The arguments of every start so far."""
        return [entry["argv"][3:] for entry in self.wire() if "run" in entry]

    @property
    def model_calls(self) -> list[ModelCall]:
        """What the model was asked so far: the requests that the real Codex would have made."""
        folders = sorted((self._folder / "models").iterdir(), key=lambda path: int(path.name))
        entries = [entry for folder in folders for entry in _lines(folder / "ledger.ndjson")]
        return [ModelCall(entry["body"], entry["turn_of_script"], entry["sentence"]) for entry in entries]

    @property
    def problems(self) -> list[str]:
        """A sentence for each request to the model that the script had no answer for."""
        return [call.sentence for call in self.model_calls if call.sentence]

    @property
    def unplayed(self) -> list[str]:
        """A sentence for each recorded frame that the client has not sent, and for each that it sent beside the recording."""
        return self._replays.problems(self.wire, self._start)

    def wait(self, method: str, count: int = 1, seconds: float = 10.0) -> list[dict[str, Any]]:
        """Wait until the client has sent so many messages of a method; return them. AssertionError when it does not."""
        __tracebackhide__ = True
        deadline = time.monotonic() + seconds
        while True:
            found = [message for message in self.sent if isinstance(message, dict) and message.get("method") == method]
            if len(found) >= count:
                return found
            if time.monotonic() > deadline:
                raise AssertionError(f"The client has not sent {count} x {method} within {seconds:g} s, but {self.methods}.")
            time.sleep(0.005)

    def wire(self) -> list[dict[str, Any]]:
        """What passed so far, in order, as `harness.shell.wire_tap` takes it down."""
        return _lines(self._folder / "wire.ndjson")


class CodexBackend:
    """A Responses backend of one's own, for one test: script, requests, tokens and gates are nobody else's.

    `url` is the prefix to give to a client: `{url}/v1` is an API base URL, `{url}/backend-api/codex` that of ChatGPT and
    `{url}/oauth/token` the token URL.
    """

    def __init__(self, session: BackendSession) -> None:
        self.lenient = False
        self.url = session.url
        self._session = session
        self._kept: list[Request] | None = None

    def script(self, script: object) -> None:
        """Say what the model says; `BackendError` with a sentence when it is no script."""
        self._session.script(script)

    @property
    def requests(self) -> list[Request]:
        """Every request so far, in order."""
        return self._kept if self._kept is not None else [request_of(entry, self.url) for entry in self._session.ledger()]

    def close(self) -> None:
        """End it; what was asked can still be told."""
        self._kept = self.requests
        self._session.close()

    def wait(self, count: int, seconds: float = 10.0) -> list[Request]:
        """Wait until so many requests have been answered; return all. AssertionError when there are fewer."""
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
        """A sentence for each request that a rule, an expectation or the script refused."""
        return self._session.problems()

    def wait_at_gate(self, gate: str, seconds: float = 10.0) -> bool:
        """Wait until an answer stands at a gate; return whether one does."""
        return self._session.wait_at_gate(gate, seconds)

    def release(self, gate: str) -> None:
        """Open a gate."""
        self._session.release(gate)


def _lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file that is being written."""
    try:
        return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
    except FileNotFoundError:
        return []


def _decoded(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line


def _judge(fake: FakeCodex | CodexBackend, name: str) -> None:
    __tracebackhide__ = True
    if not fake.lenient and (problems := fake.problems):
        told = "\n    ".join(problems[:5])
        what = f"The model was asked what the script of {name} does not have"
        pytest.fail(f"{what} (set {name}.lenient = True where that is meant):\n    {told}", pytrace=False)


def _judge_replay(fake: FakeCodex) -> None:
    __tracebackhide__ = True
    if not fake.lenient and (found := fake.unplayed):
        told = "\n    ".join([*found[:5], *([f"... and {len(found) - 5} more"] if len(found) > 5 else [])])
        meant = "cassette(path, partial=True) where it may leave out, fake_codex.lenient = True where anything may differ"
        pytest.fail(f"The client did not say what was recorded ({meant}):\n    {told}", pytrace=False)


@pytest.fixture
def fake_codex(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCodex]:
    """A drop-in `codex`: `fake_codex.script(["Hello."])`, then give a client `fake_codex.command`."""
    from harness.plugin.subjects import BadSubject, parse_app_server

    try:
        program = parse_app_server("fake").argv[0]
    except BadSubject as error:
        raise pytest.UsageError(str(error)) from None
    fake = FakeCodex(tmp_path_factory.mktemp("fake_codex"), program)
    failed = request.session.testsfailed
    yield fake
    _judge(fake, "fake_codex")
    if request.session.testsfailed == failed:  # of a test that failed before its end the rest was never sent
        _judge_replay(fake)


@pytest.fixture
def codex_backend(request: pytest.FixtureRequest, lite_client_backend: Callable[[], BackendProcess]) -> Iterator[CodexBackend]:
    """A fake Responses backend: `codex_backend.script(["Hello."])`, then give a client `codex_backend.url`."""
    session = lite_client_backend().session(f"fixture:{request.node.nodeid}")
    backend = CodexBackend(session)
    yield backend
    try:
        _judge(backend, "codex_backend")
    finally:
        backend.close()
