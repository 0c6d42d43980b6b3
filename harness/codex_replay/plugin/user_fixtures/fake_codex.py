"""The fixture `fake_codex`: a replacement for `codex` in one test, which records the messages of the client."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_replay.core.text.numbers import plural
from codex_replay.plugin.base.launcher import write_launcher
from codex_replay.plugin.user_fixtures.replayed import Replays
from codex_replay.protocol import versions
from codex_replay.shell.process.programs import program

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codex_replay.protocol.recordings.conversation import Conversation

_UNKNOWN = "unsupported call: "  # what Codex answers to the model


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request that the real Codex would have made to its model.

    `body` is the body of the request. `turn` is the index of the turn in the script that answered the request. If no turn
    answered the request, `turn` is None, and `sentence` is the reason.
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
        """The outputs of tool calls that the input contains, by call id."""
        items = self.body.get("input", [])
        return {item["call_id"]: item["output"] for item in items if str(item.get("type")).endswith("_output")}


class FakeCodex:
    """A replacement for `codex` with a scripted model.

    Each start of the fake codex in a test begins with the first turn of the script, except after `keep_threads()`.

    `path` is the executable file of the fake codex; `command` starts it as an app-server. The settings apply to all later
    starts of the fake codex.
    """

    def __init__(self, folder: Path, program: str) -> None:
        self.lenient = False
        self.path = str(folder / "codex")
        self.command = [self.path, "app-server"]
        self._folder = folder
        self._program = program
        self._env: dict[str, str] = {}
        self._replays = Replays(program, folder)
        self._partial = False
        self._version = self._codex = versions.DEFAULT
        self._settings: dict[str, Any] = {}
        self._start = ""
        for name in ("home", "models"):
            (folder / name).mkdir(parents=True)
        self._write()

    # -- before the client starts ------------------------------------------------------------------------------------------

    def version(self, codex: str) -> None:
        """Imitate another version of Codex, such as "0.169.0", when the fake codex plays a script.

        Raises ValueError for a version that fake-codex cannot imitate, and for a key of `config` that this version does not have.
        """
        from codex_replay.protocol.data_tables import unavailable

        if missing := unavailable("turn", codex):
            raise ValueError(missing)
        self._check(self._settings, codex)
        self._version = codex
        if "FAKE_CODEX_CASSETTE" not in self._env:
            self._codex = codex
        self._write()

    def keep_threads(self) -> None:
        """Keep the threads, and the position in the script, from one start of the fake codex to the next."""
        self._env["FAKE_CODEX_STATE"] = str(self._folder / "state")
        self._write()

    def script(self, script: object) -> None:
        """Set the script of the model: turns, or a whole script (docs/scripts.md). Raises `BadScript` for an invalid script."""
        from codex_replay.protocol.script.script import parse

        parse(script)
        (self._folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
        self._codex = self._version
        for name in ("FAKE_CODEX_CASSETTE", "FAKE_CODEX_MATCH"):
            self._env.pop(name, None)
        self._env["FAKE_CODEX_SCRIPT"] = str(self._folder / "script.json")
        self._write()

    def config(self, **settings: Any) -> None:
        """Set keys in the config.toml of the fake codex, for example `approval_policy="untrusted"`.

        Raises ValueError for a value that TOML cannot express, and for an unknown key, because Codex would silently ignore the
        key.
        """
        from codex_replay.shell.codex.home import toml

        self._check(settings, self._version)
        self._settings = settings
        (self._folder / "home" / "config.toml").write_text(toml(settings), encoding="utf-8")

    def _check(self, settings: dict[str, Any], codex: str) -> None:
        from codex_replay.protocol.data_tables import load
        from codex_replay.protocol.schema.known import nearest

        keys: list[str] = load("config-keys", codex)["keys"]
        for key in settings:
            if key not in keys:
                meant = f"; did you mean {near!r}?" if (near := nearest(key, keys)) else ", which ignores it."
                raise ValueError(f"{key!r} is not a key of the config.toml of Codex {codex}{meant}")

    def cassette(self, path: Path | str, *, partial: bool = False, match: str = "method") -> None:
        """Replay a recording, or a directory of recordings, instead of a script. Raises `CassetteError` for an invalid recording.

        At the end of the test, the test fails if the client has not sent all recorded messages to each start of the fake
        codex. With `partial`, the client may omit messages. With `match="method"`, a request matches the recorded request
        with the same method, and `notes` lists the differences of their contents. With `match="exact"`, the fake codex
        refuses a message with another content. Raises ValueError if `match` has another value.
        """
        from codex_replay.core.replay.match import LEVELS
        from codex_replay.shell.cassettes.file import CassetteReader
        from codex_replay.shell.cassettes.lint import find_files

        if match not in LEVELS:
            raise ValueError(f"match is {match!r}; it must be {' or '.join(map(repr, LEVELS))}.")
        for file in find_files([str(path)]):
            with CassetteReader(file) as reader:
                for _ in reader:  # a broken line in it is reported here
                    pass
                self._codex = reader.header.codex
        self._partial = partial
        self._env.pop("FAKE_CODEX_SCRIPT", None)
        self._env["FAKE_CODEX_CASSETTE"] = str(Path(path).absolute())
        self._env.pop("FAKE_CODEX_MATCH", None)  # the level `method` with notes is the default, and has no name
        if match == "exact":
            self._env["FAKE_CODEX_MATCH"] = match
        self._order()
        self._write()

    def fault(self, name: str) -> None:
        """Make the fake codex make a mistake on purpose, such as `"dies-in-turn:3"` (see FAKE_CODEX_FAULT).

        Raises ValueError for an unknown fault.
        """
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
            raise ValueError(f"{name!r} is not a fault of fake-codex. Use NAME or NAME:SEED; the names are {', '.join(names)}.")
        self._env["FAKE_CODEX_FAULT"] = name
        self._write()

    def race(self, seed: int) -> None:
        """Send some frames in another order, but only where the real server may do so; `seed` determines the order.

        Raises ValueError if the test uses a cassette, because a cassette has a fixed order.
        """
        self._env["FAKE_CODEX_PACE"] = f"race:{seed}"
        self._order()
        self._write()

    def burst(self) -> None:
        """Send the frames of each turn without the pauses of the real server.

        Without pauses, a client that registers its event handlers too late misses events, and its test fails.
        """
        self._env["FAKE_CODEX_PACE"] = "burst"
        self._write()

    def _order(self) -> None:
        if "FAKE_CODEX_CASSETTE" in self._env and self._env.get("FAKE_CODEX_PACE", "").startswith("race:"):
            raise ValueError(
                "race() reorders the frames of a script, but cassette() replays in the recorded order. In one test, use "
                "either race() or cassette()."
            )

    def _write(self) -> None:
        home = str(self._folder / "home")
        env = {"HOME": home, "CODEX_HOME": home, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **self._env}
        if "FAKE_CODEX_CASSETTE" not in env:  # a cassette names its version, and has no threads to keep
            env["FAKE_CODEX_VERSION"] = self._version
        tap = [*program("codex_replay.shell.rpc.wire_tap"), str(self._folder / "wire.ndjson"), "--", "/bin/sh", "-c"]
        # Each start writes a ledger of its own; making a directory is how two that start at once do not get the same.
        ledger = f'cd "{self._folder}/models"; n=0; until mkdir $n 2>/dev/null; do n=$((n+1)); done; cd "$OLDPWD"'
        start = f'{ledger}; FAKE_CODEX_LEDGER="{self._folder}/models/$n/ledger.ndjson" exec "$0" "$@"'
        if self._replaying:
            start = f": cassette {len(self._replays)}; {start}"  # writes the settings of this start into the ledger of the wire
            self._replays.add(start, env, self._partial)
        self._start = start
        write_launcher(Path(self.path), [*tap, start, self._program], env)

    @property
    def _replaying(self) -> bool:
        # What a fault does to a recording may well keep the client from going on with it.
        return "FAKE_CODEX_CASSETTE" in self._env and "FAKE_CODEX_FAULT" not in self._env

    # -- afterwards ----------------------------------------------------------------------------------------------------------

    @property
    def sent(self) -> list[Any]:
        """The messages that the client has sent so far, to all starts, in order; a line that is not JSON is given as text."""
        return [_decoded(entry["got"]) for entry in self.wire() if "got" in entry]

    @property
    def received(self) -> list[Any]:
        """The messages that the server has sent to the client so far."""
        return [_decoded(entry["said"]) for entry in self.wire() if "said" in entry]

    @property
    def methods(self) -> list[str]:
        """The methods of all requests and notifications that the client has sent so far, in order."""
        return [message["method"] for message in self.sent if isinstance(message, dict) and "method" in message]

    @property
    def starts(self) -> list[list[str]]:
        """The command line arguments of every start of the fake codex so far."""
        return [entry["argv"][3:] for entry in self.wire() if "run" in entry]

    @property
    def model_calls(self) -> list[ModelCall]:
        """Return the requests that the real Codex would have sent to its model so far."""
        folders = sorted((self._folder / "models").iterdir(), key=lambda path: int(path.name))
        entries = [entry for folder in folders for entry in _lines(folder / "ledger.ndjson")]
        return [ModelCall(entry["body"], entry["turn_of_script"], entry["sentence"]) for entry in entries]

    @property
    def problems(self) -> list[str]:
        """One sentence for each request to the model that the script could not answer."""
        return [call.sentence for call in self.model_calls if call.sentence]

    @property
    def unplayed(self) -> list[str]:
        """One sentence for each recorded frame that the client has not sent, and for each frame of the client that is not in the
        recording.
        """
        return self._replays.differences(self.wire, self._start).problems

    @property
    def notes(self) -> list[str]:
        """One sentence for each request that was answered although its content differs from the recorded request."""
        return self._replays.differences(self.wire, self._start, seconds=0.0).notes

    @property
    def complaints(self) -> list[str]:
        """Return the errors that fail the test at its end, or an empty list if `lenient` is set."""
        return [] if self.lenient else [*self.problems, *self.unplayed]

    @property
    def headline(self) -> str:
        """The first line of the failure, and how to allow each difference."""
        if "FAKE_CODEX_CASSETTE" not in self._env:
            return "The script of fake_codex has no turn for a request (to allow it, set fake_codex.lenient = True)"
        allow = "to allow missing messages, use cassette(path, partial=True); to allow any difference, fake_codex.lenient = True"
        return f"The client differs from the recording ({allow})"

    @property
    def conversation(self) -> Conversation:
        """The frames that client and server have sent so far, in order, for `normalise`, `diff` and snapshots.

        If connections overlap in time, all frames of one connection come before those of the next; the content of the clients'
        frames determines the order.
        """
        from codex_replay.protocol.recordings.conversation import rpc_conversation

        sides = [
            ("client" if "got" in entry else "server", entry.get("got", entry.get("said")))
            for entry in by_connection(self.wire())
        ]
        lines = ((side, line.encode("utf-8", "surrogateescape") + b"\n") for side, line in sides if line is not None)
        return rpc_conversation(lines, self._codex)

    def wait(self, method: str, count: int = 1, seconds: float = 10.0) -> list[dict[str, Any]]:
        """Wait until the client has sent `count` messages of a method; return these messages.

        Raises AssertionError on a timeout.
        """
        __tracebackhide__ = True
        deadline = time.monotonic() + seconds
        while True:
            found = [message for message in self.sent if isinstance(message, dict) and message.get("method") == method]
            if len(found) >= count:
                return found
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"The client did not send {method} {plural(count, 'time')} within {seconds:g} s; it sent {self.methods}."
                )
            time.sleep(0.005)

    def wire(self) -> list[dict[str, Any]]:
        """Return the messages so far, in order, as `codex_replay.shell.rpc.wire_tap` records them."""
        return _lines(self._folder / "wire.ndjson")


def by_connection(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the recorded lines, grouped by connection (one start of the server).

    Connections that do not overlap in time keep their order. Connections that overlap in time are sorted by the content of the
    clients' lines, because their order may differ between runs.
    """
    starts: dict[Any, list[tuple[int, dict[str, Any]]]] = {}
    groups: list[list[tuple[int, dict[str, Any]]]] = []
    for at, entry in enumerate(entries):
        if "run" in entry:
            groups.append(starts.setdefault(entry["pid"], []))
            if groups[-1]:  # a process id that is used again
                groups[-1] = starts[entry["pid"]] = []
            groups[-1].append((at, entry))
        elif entry.get("of") in starts:
            starts[entry["of"]].append((at, entry))
        else:
            groups.append([(at, entry)])
    clusters: list[list[list[tuple[int, dict[str, Any]]]]] = []
    last = -1
    for group in groups:
        if group[0][0] > last:
            clusters.append([])
        clusters[-1].append(group)
        last = max(last, group[-1][0])
    ordered = (group for cluster in clusters for group in sorted(cluster, key=_sent))
    return [entry for group in ordered for _, entry in group]


def unknown_tools(calls: Iterable[ModelCall], codex: str) -> list[str]:
    """Return one sentence for each tool that the script calls, and that this version of Codex does not have."""
    texts = [text for call in calls for text in call.outputs.values() if isinstance(text, str) and text.startswith(_UNKNOWN)]
    names = dict.fromkeys(text.removeprefix(_UNKNOWN) for text in texts)
    return [f"Codex {codex} does not have the tool {name!r}, which the script calls" for name in names]


def _sent(group: list[tuple[int, dict[str, Any]]]) -> list[str]:
    return [entry["got"] for _, entry in group if "got" in entry]


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the complete lines of a file that is still being written."""
    try:
        return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
    except FileNotFoundError:
        return []


def _decoded(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line
