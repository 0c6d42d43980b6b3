"""List what a recording needs but an empty home folder lacks: MCP servers, skills, files, a login, a repository.

`codex-replay replay` first prints the needs of a recording, so that the user understands the differences that a missing
part causes. The list cannot contain needs that a recording does not show, such as files that a command reads, and enabled
features.

Source: docs/contract/real-0.92.md, section 4 (skills, MCP servers, accounts), section 2 (patches and images).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.cassette.http_frames import header
from codex_replay.core.text.escape import escape
from codex_replay.core.text.numbers import plural

#: The directory of the skills that each Codex brings itself.
OWN_SKILLS = "/.system/"
#: The requests with which a client logs in itself.
LOGINS = ("account/login/start", "loginApiKey", "loginChatGpt")
#: Requests whose results show a login, and the member that does.
ACCOUNTS = {"account/read": "account", "getAuthStatus": "authMethod", "account/rateLimits/read": "rateLimits"}
SHOWN = 3


def needs(frames: Iterable[Frame], config: Any = None) -> list[str]:
    """Return the needs that the frames of a recording show, each in a few words such as "the MCP server tiny".

    `config` is the configuration of the server from the cassette's header, or None.
    """
    found = _Needs()
    for frame in frames:
        if frame.seam == "rpc" and type(frame.value) is dict:
            (found.client if frame.sender == "client" else found.server)(frame.value)
        elif frame.kind == "request":
            found.upstream(frame.payload)
    return found.sentences(_table(_table(config).get("mcp_servers")))


class _Needs:
    """The needs that were found so far, in dicts without values, because dicts keep their order."""

    def __init__(self) -> None:
        self._servers: dict[str, None] = {}
        self._skills: dict[str, None] = {}
        self._files: dict[str, None] = {}
        self._made: set[str] = set()  # files that a patch of the recording itself adds
        self._repository = False
        self._login: bool | None = False  # None once the recorded client has logged in itself
        self._asked: dict[str, Any] = {}

    def client(self, message: dict[str, Any]) -> None:
        """Read a message of the client and add the needs that it shows."""
        params = _table(message.get("params"))
        self._asked[repr(message.get("id"))] = message.get("method")
        if message.get("method") in LOGINS:
            self._login = None
        elif message.get("method") == "mcpServer/oauth/login":
            self._servers.update(dict.fromkeys(_texts([params], "name")))
        images = [item for item in _list(params.get("input")) if _table(item).get("type") == "localImage"]
        self._files.update(dict.fromkeys(_texts(images, "path")))

    def server(self, message: dict[str, Any]) -> None:
        """Read a message of the server and add the needs that it shows."""
        method, params = message.get("method"), _table(message.get("params"))
        if method == "codex/event/mcp_startup_update":
            self._servers.update(dict.fromkeys(_texts([params.get("msg")], "server")))
        elif method == "mcpServer/startupStatus/updated":
            self._servers.update(dict.fromkeys(_texts([params], "name")))
        self._item(_table(params.get("item")))
        self._result(self._asked.get(repr(message.get("id"))), _table(message.get("result")))

    def upstream(self, request: dict[str, Any]) -> None:
        """Read a request of the real server to its model. If the user logged in with ChatGPT, the request names the account."""
        login = request["path"].endswith("/oauth/token") or header(request["headers"], "chatgpt-account-id") is not None
        if self._login is not None:
            self._login |= login

    def sentences(self, configured: dict[str, Any]) -> list[str]:
        """Return the needs that were found; `configured` has the MCP servers in the recording's configuration, by name."""
        found = [f"the MCP server {escape(name)}{_command(_table(configured.get(name)))}" for name in self._servers]
        for word, paths in (("skill", self._skills), ("file", self._files)):
            found += [f"{plural(len(paths), word)} ({_some([*paths])})"] if paths else []
        return [*found, *(["a git repository"] if self._repository else []), *(["a login"] if self._login else [])]

    def _item(self, item: dict[str, Any]) -> None:
        if item.get("type") == "imageView":
            self._files.update(dict.fromkeys(_texts([item], "path")))
        for change in _list(item.get("changes")) if item.get("type") == "fileChange" else ():
            path, kind = _table(change).get("path"), _table(_table(change).get("kind")).get("type")
            if type(path) is str and kind == "add":
                self._made.add(path)
            elif type(path) is str and path not in self._made:
                self._files[path] = None

    def _result(self, method: Any, result: dict[str, Any]) -> None:
        self._repository |= method == "gitDiffToRemote" and bool(result)
        self._repository |= bool(_table(result.get("thread")).get("gitInfo"))
        if method == "skills/list":
            for place in _list(result.get("data")):
                paths = _texts(_list(_table(place).get("skills")), "path")
                self._skills.update(dict.fromkeys(path for path in paths if OWN_SKILLS not in path))
        elif method == "mcpServerStatus/list":
            self._servers.update(dict.fromkeys(_texts(_list(result.get("data")), "name")))
        elif method in ACCOUNTS and self._login is not None:
            self._login |= bool(result.get(ACCOUNTS[method]))


def _some(paths: list[str]) -> str:
    more = [f"{len(paths) - SHOWN} more"] if len(paths) > SHOWN else []
    return ", ".join([*map(escape, paths[:SHOWN]), *more])


def _command(server: dict[str, Any]) -> str:
    """Return the command line of a configured MCP server in brackets; "" if it has none."""
    parts = [server.get("command"), *_list(server.get("args"))]
    return f" ({escape(' '.join(map(str, parts)))})" if parts[0] else ""


def _texts(tables: list[Any], key: str) -> Iterator[str]:
    """Yield the texts under one key in the given objects."""
    for table in tables:
        text = _table(table).get(key)
        if type(text) is str:
            yield text


def _table(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []
