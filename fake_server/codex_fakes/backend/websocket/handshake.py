"""Answer the handshake of a WebSocket.

The backend accepts the handshake, refuses it, or makes the mistake that the script demands. This module is imported at the
first upgrade.

Sources: RFC 6455, section 4.2.1; the measured behaviour of Codex 0.169.0.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from websockets.exceptions import InvalidHandshake
from websockets.extensions.permessage_deflate import PerMessageDeflate, ServerPerMessageDeflateFactory
from websockets.headers import build_extension, parse_extension
from websockets.utils import accept_key

from codex_fakes.backend.answers import dump, refuse
from codex_fakes.backend.exchange import Exchange, Request, reason
from codex_fakes.backend.handshakes import Handshake
from codex_fakes.backend.ledger import Entry
from codex_fakes.backend.rules.auth import Asked
from codex_fakes.backend.rules.table import AUTH_RULES, Violation, first_violation
from codex_fakes.backend.sessions import Session
from codex_fakes.backend.websocket.channel import Answer, Channel
from codex_fakes.model.faults import STATUSES


def refused_handshake(request: Request) -> Violation | None:
    """Return the error in the handshake (RFC 6455, section 4.2.1), or None."""
    wrong = None
    try:
        key = base64.b64decode(request.header("sec-websocket-key") or "", validate=True)
    except binascii.Error:
        key = b""
    upgraded = any(name.lower() == "upgrade" and "websocket" in value.lower() for name, value in request.headers)
    if request.method != "GET" or request.version != "1.1" or not upgraded:
        wrong = "A WebSocket begins with GET, HTTP/1.1 and `upgrade: websocket`."
    elif "upgrade" not in (request.header("connection") or "").lower():
        wrong = "The header `connection` must contain `Upgrade`."
    elif len(key) != 16:
        wrong = "The header `sec-websocket-key` must be 16 bytes in base64."
    elif request.header("sec-websocket-version") != "13":
        wrong = "The header `sec-websocket-version` must be 13."
    return None if wrong is None else Violation("handshake", 400, "invalid_handshake", wrong)


def offer_accepted(headers: Sequence[Sequence[str]]) -> tuple[str, PerMessageDeflate] | None:
    """Return the header value that accepts a client's offer of permessage-deflate, and the compression for the server's side.

    Return None if the client makes no offer.
    """
    given = ", ".join(value for name, value in headers if name.lower() == "sec-websocket-extensions")
    try:
        offers = parse_extension(given) if given else []
    except InvalidHandshake:
        return None
    for name, parameters in offers:
        if name != "permessage-deflate":
            continue
        try:
            answer, found = ServerPerMessageDeflateFactory().process_request_params(parameters, [])
        except InvalidHandshake:
            continue
        return build_extension([(name, answer)]), found
    return None


async def serve(
    exchange: Exchange, session: Session, entry: Entry, path: str, answer: Answer, granted: Handshake | None = None
) -> None:
    """Answer a handshake, and then the messages of its connection.

    The messages are converted to HTTP requests, which the function `answer` answers. `granted` is the acceptance of the
    handshake in the recording, or None without a recording.
    """
    request = exchange.request
    settings = session.websocket
    if (violation := refused_handshake(request)) is not None:
        refuse(exchange, entry, violation)
        return
    if (fault := settings.next_handshake()) is not None:
        _fail_handshake(exchange, entry, fault)
        return
    off = session.rules_off
    if violation := first_violation(Asked(path, request.header, b"", session.tokens), AUTH_RULES, off):
        refuse(exchange, entry, violation)
        return
    compression = settings.compression and (granted is None or granted.compression)
    accepted = offer_accepted(request.headers) if compression else None
    more = [*(granted.headers if granted is not None else ()), *settings.headers]
    headers = [("connection", "Upgrade"), ("upgrade", "websocket")]
    headers.append(("sec-websocket-accept", accept_key(request.header("sec-websocket-key") or "")))
    if accepted is not None:
        headers.append(("sec-websocket-extensions", accepted[0]))
    lines = [f"HTTP/1.1 101 {reason(101)}", *(f"{name}: {value}" for name, value in (*headers, *more)), "", ""]
    exchange.write_bytes("\r\n".join(lines).encode("latin-1", "replace"))
    entry.answer, entry.status = "route", 101
    entry.close("end")  # its messages have entries of their own
    channel = Channel(exchange, session, path, answer, accepted[1] if accepted is not None else None)
    try:
        await channel.run()
    finally:
        channel.release()


def _fail_handshake(exchange: Exchange, entry: Entry, fault: str) -> None:
    entry.answer = "turn"
    if fault == "closed":
        exchange.cut()
        entry.close("cut")
    elif fault == "reset":
        exchange.reset()
        entry.close("reset")
    else:
        status = int(fault.removeprefix("http_"))
        code, message = STATUSES.get(status, ("upgrade_required", "Use HTTP."))
        entry.status = status
        body = dump({"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}})
        exchange.respond(status, [("content-type", "application/json")], body)
