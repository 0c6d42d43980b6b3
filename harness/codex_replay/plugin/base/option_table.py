"""The options of the suites as a table, which the commands that start pytest read without loading pytest."""

from __future__ import annotations

from typing import Any

RECORD_MODES = ("none", "new", "all")
#: The profiles of the suites; a suite of the user's own may have others (`@pytest.mark.profile`).
PROFILES = ("default", "as-specified", "works-on-0.92", "speaks-v2")

#: key -> (default, metavar, help). The option is `--KEY`; the key of the table is `KEY`.
KEYS: dict[str, tuple[Any, str, str]] = {
    "app-server": (
        "fake",
        "SUBJECT",
        "The app-server under test: fake, fake:CMD, codex@VERSION, or a command line. Default: fake.",
    ),
    "lite-client": ("reference", "SUBJECT", "The lite client under test: reference, or a command line (docs/lite-client.md)."),
    "editor-client": (
        "reference",
        "SUBJECT",
        "The editor client under test: reference, or a command line with {codex} in it (docs/editor-client.md).",
    ),
    "proxy": (
        None,
        "SUBJECT",
        "The proxy under test: reference (default), a command, a URL, or a name of [tool.codex-replay.proxy] (docs/proxy.md).",
    ),
    "baseline": (None, "FILE", "A file of known failures, each with its reason (docs/proxy.md)."),
    "backend": (None, "SUBJECT", "The Responses backend under test: fake (default), fake:CMD, or a URL (docs/backend-suite.md)."),
    "record": ("none", "MODE", "Record cassettes from a real app-server: none, new (only missing ones) or all."),
    "profile": ("default", "NAME", "The set of checks that must hold; cases marked for other profiles are left out."),
    "report": (None, "DIR", "The folder of the report. Default: reports/<subject>."),
    "cassettes": (None, "DIR", "The folder of the cassettes. Default: cassettes beside the suites folder."),
    "validate": ("yes", "yes|no", "Whether every frame must also satisfy the schema bundle of its Codex version. Default: yes."),
    "clients": (
        None,
        "N",
        "How many parallel clients the suite proxy uses. Default: `clients` of the proxy's table, else 8.",
    ),
    "wait": (
        None,
        "SECONDS",
        "How long a case waits for one frame. Default: 10, and 30 on a live server; after three timeouts, 3 and 9.",
    ),
}

#: The options that have no key in the table: metavar and help, without a metavar for those that take no value.
OTHERS = {
    "backend-auth": ("FILE", "The auth.json with the login for requests to a --backend URL."),
    "backend-cost-ok": ("", "Allow requests to a --backend on another host, which may cost money."),
    "backend-websocket": ("", "The backend at the --backend URL accepts WebSockets: test HTTP and WebSocket."),
    "lite-websocket": (
        "",
        "The --lite-client can use a WebSocket (LITE_TRANSPORT=websocket): also run the cases for WebSocket.",
    ),
    "update-baseline": ("", "Rewrite the file of --baseline from the failures of this run."),
    "no-early-stop": ("", "Run every case, even if the first ones all fail."),
    "shard": (
        "I/N",
        "Run every N-th case, starting with the I-th; `codex-replay report merge` joins the reports of all N shards.",
    ),
}
