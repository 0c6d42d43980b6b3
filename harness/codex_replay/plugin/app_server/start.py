"""Start the servers of a case, with the settings that a case may declare; `AppServer` is the type of the fixture `app_server`.

Each real server gets a temporary home folder, and a session of the fake Responses backend with the script of the case. Each
fake server gets the cassette of the case.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from codex_replay.core.redact.redactor import Redactor
from codex_replay.plugin.app_server.server import Server
from codex_replay.plugin.app_server.upstream import RecordedUpstream
from codex_replay.plugin.base.for_versions import value_for
from codex_replay.shell.codex.shell_tools import for_version
from codex_replay.shell.files.archive import is_file
from codex_replay.shell.rpc.client import SubjectFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codex_replay.plugin.base.naming import CaseName
    from codex_replay.plugin.base.options import Settings
    from codex_replay.plugin.base.subjects import Subject
    from codex_replay.shell.http.backend_process import BackendProcess

T = TypeVar("T")

RECORDED_HOME = "/home/user"
WAIT_REPLAY, WAIT_LIVE = 10.0, 30.0


class AppServer:
    """The value of the fixture `app_server`; a call starts the app-server under test.

    `servers` lists the servers that the case has started.
    """

    def __init__(
        self,
        name: CaseName,
        settings: Settings,
        subject: Subject,
        cassettes: Path,
        folder: Callable[[], Path],
        backend: Callable[[], BackendProcess],
    ) -> None:
        self.servers: list[Server] = []
        self.both_seams = settings.record != "none"  # whether the requests to the model are watched as well
        self.played: Callable[[object], object] = lambda script: script  # what becomes of a script before the model has it
        self._name = name
        self._settings = settings
        self._subject = subject
        self._cassettes = cassettes
        self._folder = folder
        self._backend = backend

    def __call__(
        self,
        script: object = None,
        *,
        bad_input: bool = False,
        match: str = "exact",
        cut: int | None = None,
        racy: str = "",
        ends: int | None = 0,
        refused: bool = False,
        config: Mapping[str, Any] | None = None,
        auth: str | Mapping[str, Any] | None = None,
        prepare: Callable[[Path], None] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Server:
        """Start the app-server under test.

        `script` has the replies of the model, turn by turn (see docs/scripts.md). `bad_input` is True if the case sends
        invalid frames on purpose. `match` is how strictly the fake compares the client's frames with the cassette: "exact"
        or "method". `cut` is a number of characters: the cassette omits longer strings from very long lines of the client.
        `racy` is the reason why the real server has more than one correct behaviour. The cassette of a racy case shows only
        one correct behaviour, so --record all does not replace an existing cassette. The server of a racy case need not use
        a turn with `"times": "always"`. `ends` is the expected exit status of the server. A negative `ends` is the signal
        that kills the server; None means that the harness must stop the server. `refused` is True if the fake backend rejects
        the login of the server on purpose. `env` has additional environment variables for the server.

        The arguments `config`, `auth` and `prepare` are for a real server only. `config` is a text that is added to the
        server's config.toml. `auth` is "api_key", "chatgpt" or the whole content of auth.json. `prepare` is a function that
        is called before the start, with the folder that contains `home`, `tmp` and `work`.
        """
        __tracebackhide__ = True
        cassette = self._name.path(self._cassettes, len(self.servers) + 1)
        root = self._folder()
        upstream = None
        homes = {str(root / "home"): RECORDED_HOME, **{str(root / name): f"{RECORDED_HOME}/{name}" for name in ("work", "tmp")}}
        redactor, recorded = Redactor(paths=homes), None
        if self._subject.live:
            session = str(self._name) if not self.servers else f"{self._name}.{len(self.servers) + 1}"
            played = self.played(script if script is not None else {"turns": []})
            upstream = self._backend().session(session, for_version(played, self._subject.version))
            if self.both_seams:
                recorded = RecordedUpstream(upstream.url, redactor)
            given, work = self._live_home(root, recorded.url if recorded else upstream.url, config, auth)
            if prepare is not None:
                prepare(root)
        else:
            if not is_file(str(cassette)):
                raise SubjectFailure(
                    f"There is no recording of {self._name} ({cassette}); "
                    f"record it with --app-server codex@{self._subject.version} --record new."
                )
            given, work = _fake_home(root, cassette, match)
        server = Server(self._subject.argv, env={**given, **(env or {})}, cwd=work, timeout=self._wait)
        server.work, server.live, server.bad_input, server.version = work, self._subject.live, bad_input, self._subject.version
        server.cut, server.racy, server.ends, server.refused = cut, racy, ends, refused
        server.cassette, server.upstream, server.redactor, server.recorded = cassette, upstream, redactor, recorded
        server.behind = {"script": script, "config": config}
        self.servers.append(server)
        return server

    def by_version(self, values: Mapping[str, T]) -> T:
        """Return the value in `values`, keyed by Codex version, of the newest version that is not newer than the server."""
        return value_for(values, Server.dialect or self._subject.version)

    @property
    def _wait(self) -> float:
        return self._settings.wait or (WAIT_LIVE if self._subject.live else WAIT_REPLAY)

    def _live_home(
        self, root: Path, url: str, config: Mapping[str, Any] | None, auth: str | Mapping[str, Any] | None
    ) -> tuple[dict[str, str], str]:
        from codex_replay.shell.codex.home import ApiKey, ChatGpt, HermeticHome

        home = HermeticHome(root, url, version=self._subject.version, extra_config=config)
        if auth is not None:
            known = {"api_key": ApiKey, "chatgpt": ChatGpt}
            home.write_auth(known[auth]().encode() if isinstance(auth, str) else auth)
        return dict(home.env), str(home.work)


def _fake_home(root: Path, cassette: Path, match: str) -> tuple[dict[str, str], str]:
    """Create the folders of a real server; a fake server needs no folders, only settings."""
    home, tmp, work = (root / name for name in ("home", "tmp", "work"))
    for folder in (home, tmp, work):
        folder.mkdir(parents=True)
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "CODEX_HOME": str(home),
        "TMPDIR": str(tmp),
        "LANG": "C.UTF-8",
        "FAKE_CODEX_CASSETTE": str(cassette),
        "FAKE_CODEX_MATCH": match,
    }
    return env, str(work)
