"""What the real server says of params of a wrong form, which it judges before anything else, even before the handshake.

Found by sending each form to the real binary; `harness.protocol.refusals` has what holds for every method.
"""

from __future__ import annotations

from harness.protocol.refusals import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def malformed(request: Mapping[str, Any], methods: Mapping[str, str]) -> str | None:
    """Return the message that refuses a request for the form of its params; `methods` is `refusals.load_methods`."""
    params = request.get("params")
    if params is None:
        return None
    wanted = methods.get(request["method"])
    if wanted == "unit":
        return None if params == {} else f"Invalid request: invalid type: {type_name(params)}, expected unit"
    return _client(params) if request["method"] == "initialize" else None


def _client(params: Any) -> str | None:
    """Judge the params of initialize: what the client says of itself."""
    if type(params) not in (dict, list):
        return None  # as for any other method
    if params == []:
        return "Invalid request: invalid length 0, expected struct InitializeParams with 1 element"
    if type(params) is dict and "clientInfo" not in params:
        return "Invalid request: missing field `clientInfo`"
    client = params["clientInfo"] if type(params) is dict else params[0]
    if type(client) is list:
        return f"Invalid request: invalid length {len(client)}, expected struct ClientInfo with 3 elements"
    if type(client) is not dict:
        return f"Invalid request: invalid type: {type_name(client)}, expected struct ClientInfo"
    for name in ("name", "title", "version"):
        if name in client and type(client[name]) is not str and not (name == "title" and client[name] is None):
            return f"Invalid request: invalid type: {type_name(client[name])}, expected a string"
    for name in ("name", "version"):
        if name not in client:
            return f"Invalid request: missing field `{name}`"
    return None
