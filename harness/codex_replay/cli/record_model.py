"""`codex-replay record --model SCRIPT -- codex@VERSION`: record the real Codex in a temporary home, with a scripted model."""

from __future__ import annotations

import contextlib
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codex_replay.shell.http.backend_process import BackendSession

#: What stands before the version in the command.
CODEX = "codex@"
#: What the folders of the hermetic home become in a cassette, as in the recordings of the suites.
_RECORDED_HOME = "/home/user"
#: The output that Codex gives the model for a call of a tool that this version does not have.
_UNSUPPORTED = re.compile("unsupported (?:custom tool )?call: (.+)")


class CannotRecord(Exception):
    """The recording cannot start; the text is a sentence with the reason."""


class Scripted:
    """An installed Codex, the script of its model, and its home folder; `argv` is the complete command."""

    def __init__(self, root: Path, version: str, argv: tuple[str, ...], script: object, session: BackendSession) -> None:
        self._root, self._session = root, session
        self.version, self.argv, self.script = version, argv, script
        self.upstream = session.url
        #: Path -> what it becomes in the cassette.
        self.paths = {str(root / "home"): _RECORDED_HOME, str(root / "tmp"): f"{_RECORDED_HOME}/tmp"}

    def environment(self, url: str) -> dict[bytes, bytes]:
        """Write a home folder whose configuration names `url` as the URL of the model, and return the environment for Codex."""
        from codex_replay.shell.codex.home import HermeticHome

        home = HermeticHome(self._root, url, version=self.version)
        return {name.encode(): value.encode() for name, value in home.env.items()}

    def header(self) -> dict[str, Any]:
        """Return the description of the scripted model for the header of the cassette; a replay uses the same model."""
        return {"upstream": {"script": self.script, "config": None}}

    def problems(self) -> list[str]:
        """Return a sentence for each request without an answer, each tool that Codex does not have, and the unused turns."""
        from codex_replay.shell.http.backend_process import BackendError

        try:
            found = [f"The model has no answer for a request: {problem}" for problem in self._session.problems(but=[404, 426])]
            found += self._missing_tools()
            unused = self._session.unused_turns()
        except BackendError as error:
            return [str(error)]
        if unused:
            found.append(f"No request used {', '.join(f'turns[{i}]' for i in unused)} of the script.")
        return found

    def _missing_tools(self) -> list[str]:
        tools: dict[str, list[str]] = {}
        for body in (body for entry in self._session.ledger() if isinstance(body := entry.get("body"), dict)):
            outputs = [str(item.get("output")) for item in body.get("input") or () if isinstance(item, dict)]
            for name in (match[1] for match in map(_UNSUPPORTED.fullmatch, outputs) if match):
                tools[name] = [tool["name"] for tool in body.get("tools") or () if "name" in tool]
        return [
            f"The script calls the tool {name}, which Codex {self.version} does not have. Its tools are: {', '.join(known)}."
            for name, known in tools.items()
        ]


@contextlib.contextmanager
def scripted(path: str, command: tuple[str, ...]) -> Iterator[Scripted]:
    """Start the scripted model, and yield the model and its Codex; raises `CannotRecord` if one of the two cannot start."""
    from codex_replay.protocol.script.script import BadScript
    from codex_replay.shell.codex.cache import find_installed
    from codex_replay.shell.codex.errors import CodexInstallError
    from codex_replay.shell.files.script_file import read_script
    from codex_replay.shell.http.backend_process import BackendError, BackendProcess

    version = command[0].removeprefix(CODEX)
    try:
        script, binary = read_script(Path(path)), find_installed(version)
    except (BadScript, CodexInstallError) as error:
        raise CannotRecord(str(error).rstrip(".")) from None
    if binary is None:
        raise CannotRecord(f"Codex {version} is not installed: run `codex-replay codex install {version}`")
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="codex-replay-", ignore_cleanup_errors=True)))
        try:
            session = stack.enter_context(BackendProcess()).session("model", script)
        except BackendError as error:
            raise CannotRecord(str(error).rstrip(".")) from None
        yield Scripted(root, version, (str(binary), *(command[1:] or ("app-server",))), script, session)
