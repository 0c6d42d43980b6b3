"""The pytest plugin. Suites may import the names of this package; its modules are internal.

Each case contains its scenario:

The fixture `app_server` starts the server that `--app-server` names. A call of the fixture returns a `Server`: the
conversation with the started server.

Example of a case:

    def test_text_turn(app_server: AppServer) -> None:
        server = app_server(script=[{"items": ["Hello"]}])
        server.initialize()
        thread = server.request("thread/start", {"cwd": server.work})["thread"]
        ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import codex_replay.plugin.base.plain_import  # noqa: F401 - before any other module of ours

if TYPE_CHECKING:
    from codex_replay.plugin.app_server.server import Server
    from codex_replay.plugin.app_server.start import AppServer
    from codex_replay.shell.rpc.client import ErrorReply, SubjectFailure

__all__ = ["AppServer", "ErrorReply", "Server", "SubjectFailure"]

_MODULES = {
    "AppServer": "codex_replay.plugin.app_server.start",
    "ErrorReply": "codex_replay.shell.rpc.client",
    "Server": "codex_replay.plugin.app_server.server",
    "SubjectFailure": "codex_replay.shell.rpc.client",
}


def __getattr__(name: str) -> object:
    """Import a public name at its first use, because every pytest run imports this package if codex-replay is installed."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)
