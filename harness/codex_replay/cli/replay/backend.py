"""`codex-replay replay F --backend S`: send the HTTP requests of a recording to a backend, and compare the answers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from codex_replay.cli.io.console import Unable
from codex_replay.cli.replay import model
from codex_replay.core.cassette import http_frames, ws_frames
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.text.numbers import plural
from codex_replay.core.wire.loopback import is_loopback
from codex_replay.protocol.recordings.compare import Comparison, compare
from codex_replay.shell.http.backend_process import BackendError, BackendProcess
from codex_replay.shell.http.player import HttpPlayer
from codex_replay.shell.http.upstream import Upstream

#: Statuses that refuse a login.
REFUSED = (401, 403)


def play_to_backend(
    cassette: str, frames: list[Frame], subject: str, *, codex: str, auth: str | None, cost_ok: bool, timeout: float
) -> tuple[Comparison, str | None, str]:
    """Send the requests of a recording to `subject` ("fake", or a URL).

    Return the comparison of the answers, the failures, and notes for the user.

    `codex` is the Codex version of the recording: the replay uses the tables of this version. `auth` is the path of an
    auth.json: the login in this file replaces the redacted login of the recording. Raises `Unable` if the replay cannot run.
    """
    http = [frame for frame in frames if frame.seam == "http"]
    asked = [frame for frame in http if frame.kind == "request"]
    messages = [frame for frame in http if frame.kind == "ws" and frame.sender == "client"]
    if not asked:
        raise Unable(f"{cassette}: the recording has no HTTP request, so it cannot be replayed to a backend.")
    left_out = next((frame for frame in (*asked, *messages) if "omitted" in frame.payload), None)
    if left_out is not None:
        what = "message" if left_out.kind == "ws" else "body"
        raise Unable(f"{cassette}: the {what} of frame {left_out.n} was not recorded, so the request cannot be sent.")
    headers = credentials(Path(auth)) if auth else {}
    if subject != "fake":
        try:
            Upstream(subject)
        except ValueError as error:
            raise Unable(f"{error}.") from None
    if subject != "fake" and not cost_ok and not is_loopback(subject):
        size = sum(len(http_frames.body_bytes(frame.payload)) for frame in asked)
        size += sum(len(ws_frames.data_of(frame.payload)) for frame in messages)
        host, count = urlsplit(subject).hostname, plural(len(asked) + len(messages), "request")
        raise Unable(
            f"The replay would send {count} ({size / 1000:.0f} KB) to {host}, on your account, and may cost "
            "money. To allow the requests, add --backend-cost-ok."
        )
    with _backend(subject, cassette) as url:
        try:
            player = HttpPlayer(url, codex=codex, headers=headers, seconds=timeout)
            failure = player.play(http)
        except OSError as error:
            raise Unable(f"the backend at {url} cannot be reached ({error.strerror or error}); check that it runs.") from None
    note = model.ITSELF if subject == "fake" else _refused_login(http, player.frames, auth)
    return compare(player.recorded, player.frames, codex), failure, note


def _refused_login(recorded: list[Frame], live: list[Frame], auth: str | None) -> str:
    """Return advice if the backend refused a login that the recorded backend accepted; otherwise return ""."""
    was, came = ([frame.payload["status"] for frame in one if frame.kind == "response"] for one in (recorded, live))
    refused = next(((old, new) for old, new in zip(was, came, strict=False) if new in REFUSED and old not in REFUSED), None)
    asked = [frame.payload["headers"] for frame in recorded if frame.kind == "request"]
    if refused is None or all(http_frames.header(headers, "authorization") is None for headers in asked):
        return ""
    old, new = refused
    what = f"The backend answered {new}, where {old} was recorded: "
    if auth is not None:
        return f"{what}it does not accept the login in {auth}."
    return f"{what}the login is redacted in a recording. Give a valid login with --auth auth.json (docs/replaying.md)."


@contextlib.contextmanager
def _backend(subject: str, cassette: str) -> Iterator[str]:
    if subject != "fake":
        yield subject
        return
    try:
        with BackendProcess() as process:
            session = process.session("replay")
            session.cassette(Path(cassette))
            yield session.url
    except BackendError as error:
        raise Unable(str(error)) from None


def credentials(path: Path) -> dict[str, str]:
    """Return the headers for an auth.json: an API key takes precedence over tokens (REAL-06)."""
    try:
        value: Any = json.loads(path.read_bytes())
        key = value.get("OPENAI_API_KEY")
        if key:
            return {"authorization": f"Bearer {key}"}
        tokens = value["tokens"]
        found = {"authorization": f"Bearer {tokens['access_token']}"}
        inner = tokens.get("id_token")
        account = tokens.get("account_id") or (inner.get("chatgpt_account_id") if isinstance(inner, dict) else None)
        return {**found, "chatgpt-account-id": account} if account else found
    except OSError as error:
        raise Unable(f"{path}: the login cannot be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Unable(f"{path}: this is not an auth.json: it needs OPENAI_API_KEY, or tokens with an access_token.") from None
