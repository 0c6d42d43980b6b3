"""The pytest plugin. What a suite may import stands here; the rest of the package is the plugin's own.

A case is its own scenario:

    def test_text_turn(app_server: AppServer) -> None:
        server = app_server(script=[{"items": ["Hello"]}])
        server.initialize()
        thread = server.request("thread/start", {"cwd": server.work})["thread"]
        ...

`app_server` starts the subject that `--app-server` names; `Server` is the conversation with it.
"""

from __future__ import annotations

from harness.plugin import plain  # noqa: F401 - before any other module of ours
from harness.plugin.app_server import AppServer
from harness.plugin.server import Server
from harness.shell.client import ErrorReply, SubjectFailure

__all__ = ["AppServer", "ErrorReply", "Server", "SubjectFailure"]
