"""Prepare the model and the home folder for a real app-server that gets the messages of a recorded client.

Strategy. If the cassette has HTTP answers, the requests of one conversation to one path get the recorded answers one after
the other. The requests of the real server are not compared, because they depend on the home folder. If the server sends
more requests than the recording has, the additional requests get status 501. Without recorded answers, the script of the
recording answers requests; without a script, all requests get a default reply. The option `--script` takes precedence over
the recorded answers, the script and the default reply.

The answers of an app-server contain, for example, the name of its model provider. If a user made the recording, the replay
configures the recorded values of all settings that the client did not set itself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_replay.cli.io.console import Unable
from codex_replay.core.replay.match import Bindings
from codex_replay.shell.http.backend_process import DEFAULT_SESSION, BackendError, BackendProcess

if TYPE_CHECKING:
    from codex_replay.core.cassette.frames import Frame, Header
    from codex_replay.shell.codex.home import HermeticHome
    from codex_replay.shell.http.backend_process import BackendSession

#: The descriptions of the model in `--json`; all except the first are also printed.
RECORDED = "The model is replaced by its recorded answers."
OWN_SCRIPT = "The cassette has no recorded answers of the model; the script in its header answers."
GIVEN_SCRIPT = "The script of --script answers for the model."
DEFAULT = (
    'The cassette has no recorded answers of the model; it always answers "Hello from the scripted backend.". '
    "Record both seams (docs/recording.md), or give --script."
)
NOT_OURS = (
    "The command uses its own model. To use the recorded answers, write {listen} in place of its URL, as in "
    "-c 'model_providers.mine.base_url=\"{listen}/v1\"'."
)
#: The note on a replay that the recording itself answered.
ITSELF = "The fake replayed this cassette: this checks the recording, but not your own server."
#: Built into Codex, and not to be changed by its configuration: it takes its URL from the environment, and needs a login.
BUILT_IN = "openai"
PROVIDER_KEYS = ("modelProvider", "model_provider_id", "model_provider")


@dataclass(frozen=True)
class Upstream:
    """The model for a real server: a session of the fake backend, and a sentence that names the source of the model's answers."""

    session: BackendSession
    says: str

    def serve(
        self, cassette: Path, frames: Sequence[Frame], places: Mapping[str, str], root: Path
    ) -> dict[int, Callable[[], None]]:
        """Answer the requests of the replayed app-server from the recording.

        Return functions by frame number: the player must call each function when it reaches the frame with this number.

        In the answers, the real directories replace the recorded directories, as in the messages of the client. If the
        recorded client sent a frame while an answer was in progress, the rest of the answer waits until the player has sent
        the same frame.
        """
        if self.says != RECORDED:
            return {}
        bindings = Bindings()
        for recorded, live in places.items():
            bindings.pair_path(recorded, live)
        copy = root / "answers" / cassette.name  # misses name the recording
        copy.parent.mkdir()
        copy.write_bytes(bindings.apply(cassette.read_bytes()))
        held = held_frames(frames)
        self.session.cassette(copy, by="conversation", hold=held)
        return {number: partial(self.session.release, f"frame {number}") for number in held}

    def problems(self) -> list[str]:
        """Return a sentence for each request that the fake backend refused."""
        return [
            # Of a request that no recording answers, that there are no turns either goes without saying.
            f"{entry['method']} {entry['path']}: {message[max(0, message.find('No recorded request')) :]}"
            for entry in self.session.ledger()
            if (message := entry["sentence"])
        ]


def held_frames(frames: Iterable[Frame]) -> list[int]:
    """Return the frames of the model's answers that must wait for a frame of the client.

    A frame must wait if the recorded client sent a frame between it and the previous frame of the same connection.
    """
    found, sent = [], 0
    seen: dict[int | None, int] = {}  # connection -> the client's frames before its last frame
    for frame in frames:
        if frame.seam == "rpc":
            sent += frame.sender == "client"
            continue
        if frame.sender == "server" and seen.get(frame.conn, sent) < sent:
            found.append(frame.n)
        seen[frame.conn] = sent
    return found


@contextmanager
def upstream(header: Header, frames: Sequence[Frame], script: object | None) -> Iterator[Upstream]:
    """Start the fake backend that takes the place of the model in a replay; raises `Unable` if the backend cannot start."""
    own = (header.extra.get("upstream") or {}).get("script")
    recorded = any(frame.seam == "http" and frame.kind == "response" for frame in frames)
    if script is not None:
        text, value = GIVEN_SCRIPT, script
    elif recorded:
        text, value = RECORDED, {"turns": []}  # answers what is not a turn (models, tokens), and no turn
        cut = next((one for one in frames if one.seam == "http" and one.sender == "server" and not one.whole), None)
        if cut is not None:
            raise Unable(f"Frame {cut.n} was truncated when it was recorded, so it cannot be replayed; add --script.")
    else:
        text, value = (DEFAULT, None) if own is None else (OWN_SCRIPT, own)
    try:
        with BackendProcess() as backend:
            # The server repeats its model's URL in errors and in config/read: a prefix would differ from the recorded URL.
            yield Upstream(backend.session(DEFAULT_SESSION, value), text)
    except BackendError as error:
        raise Unable(str(error)) from None


@contextmanager
def folder() -> Iterator[Path]:
    """Yield a temporary folder that exists during one replay."""
    with tempfile.TemporaryDirectory(prefix="codex-replay-") as root:
        yield Path(root)


def make_home(root: Path, url: str, version: str, header: Header, frames: Sequence[Frame]) -> HermeticHome:
    """Make a home folder with which the server has the recorded provider name, and sends its requests to the recorded path."""
    from codex_replay.shell.codex.home import ApiKey, HermeticHome

    behind = header.extra.get("upstream")
    if behind:
        return HermeticHome(root, url, version=version, extra_config=behind.get("config"))
    names = _providers(frames)
    base = "{upstream}" + _base_path(frames)
    entry = {"base_url": base, "wire_api": "responses", "request_max_retries": 0, "stream_max_retries": 0}
    config: dict[str, Any] = _settings(frames)
    if names:
        config["model_provider"] = names[0]
        config["model_providers"] = {name: {"name": name, **entry} for name in names if name != BUILT_IN}
    home = HermeticHome(root, url, version=version, extra_config=config, auth=ApiKey() if BUILT_IN in names else None)
    home.env["OPENAI_BASE_URL"] = base.replace("{upstream}", home.upstream)
    return home


def _providers(frames: Sequence[Frame]) -> list[str]:
    """Return the names of the model providers in a recording, in the order in which the server sent them."""
    found: dict[str, None] = {}
    for sender in ("server", "client"):
        for frame in frames:
            if frame.seam == "rpc" and frame.sender == sender and b"rovider" in frame.raw:
                found.update(dict.fromkeys(_named(frame.value)))
    return list(found)


def _named(value: Any) -> Iterator[str]:
    if type(value) is dict:
        for key, inner in value.items():
            if key in PROVIDER_KEYS and type(inner) is str and inner:
                yield inner
            yield from _named(inner)
    elif type(value) is list:
        for inner in value:
            yield from _named(inner)


def _base_path(frames: Sequence[Frame]) -> str:
    """Return the part before `/responses` in the path of the first recorded request to the model."""
    for frame in frames:
        if frame.seam == "http" and frame.kind == "request" and frame.payload["method"] == "POST":
            path = frame.payload["path"].partition("?")[0]
            if path.endswith("/responses"):
                return str(path.removesuffix("/responses"))
    return "/v1"


def _settings(frames: Sequence[Frame]) -> dict[str, Any]:
    """Return the settings that the server reported for its first thread, without the settings that the client had set."""
    asked: dict[Any, Any] = {}
    for frame in frames:
        if frame.seam != "rpc" or type(frame.value) is not dict:
            continue
        value = frame.value
        if frame.sender == "client" and value.get("method") == "thread/start":
            asked[value.get("id")] = value.get("params") or {}
        elif frame.sender == "server" and value.get("id") in asked and type(value.get("result")) is dict:
            result, params = value["result"], asked[value["id"]]
            sandbox = str((result.get("sandbox") or {}).get("type"))
            settings = {
                "model": ("model", result.get("model")),
                "approvalPolicy": ("approval_policy", result.get("approvalPolicy")),
                "sandbox": ("sandbox_mode", _SANDBOXES.get(sandbox)),
            }
            return {key: value for name, (key, value) in settings.items() if type(value) is str and not params.get(name)}
    return {}


_SANDBOXES = {"readOnly": "read-only", "workspaceWrite": "workspace-write", "dangerFullAccess": "danger-full-access"}
