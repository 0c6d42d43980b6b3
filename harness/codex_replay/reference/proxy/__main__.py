"""Run the reference proxy: listen, print the address as one line of JSON, and serve until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress

from codex_replay.reference.proxy.app import App
from codex_replay.reference.proxy.settings import BadSetting, Settings, from_env
from codex_replay.reference.proxy.wire.http import Connection
from codex_replay.reference.proxy.wire.pool import Pool


async def serve(settings: Settings) -> int:
    """Serve requests until a signal arrives, and then end all child processes."""
    loop, end = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end.set)
    pool, connections = Pool(settings), set[Connection]()
    app = App(settings, pool)
    try:
        server = await loop.create_server(lambda: Connection(app.handle, connections), settings.host, settings.port, backlog=512)
    except OSError as error:
        print(f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}.", file=sys.stderr)
        return 1
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"ready": True, "url": f"http://{settings.host}:{port}", "pid": os.getpid()}), flush=True)
    await end.wait()
    server.close()
    for connection in list(connections):
        connection.abandon()
        await connection.finished()
    await pool.close()
    return 0


def main(argv: list[str]) -> int:
    """Read the settings from the environment, and serve; return 2 if a setting is invalid. The program takes no arguments."""
    try:
        settings = from_env(os.environ)
    except BadSetting as error:
        print(error, file=sys.stderr)
        return 2
    with suppress(OSError):
        os.makedirs(settings.workdir, exist_ok=True)  # Codex requires an existing folder
    return asyncio.run(serve(settings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
