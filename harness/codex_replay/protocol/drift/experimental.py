"""The capability with which a client gets the experimental part of the protocol, and how a client declares it.

From 0.95 on, the binary generates two bundles. The plain bundle leaves out the experimental parts, and ``--experimental``
includes them. A client that does not send ``capabilities.experimentalApi`` gets an error for messages that only the second bundle
has (-32600, "thread/start.dynamicTools requires experimentalApi capability"), unless the value is null, false or an empty list. A
version has a second bundle if, in its plain bundle, initialize can declare the capability."""

from __future__ import annotations

from typing import Any

from codex_replay.protocol.drift.shapes.read import Reader
from codex_replay.protocol.schema.bundle import Bundle

#: The member of ``params.capabilities`` of initialize, which must be true.
CAPABILITY = "experimentalApi"
#: How a person names it.
SAID = f"capabilities.{CAPABILITY}"


def declares(bundle: Bundle) -> bool:
    """Return True if the initialize of a bundle knows the capability: then the version also has an experimental bundle."""
    params = bundle.params("client-request", "initialize")
    if params is None:
        return False
    reader = Reader(dict(params.document))
    found = [each for params in reader.shape(params.node).objects for each in [params.properties.get("capabilities")]]
    return any(CAPABILITY in each.properties for node in found if node is not None for each in reader.shape(node).objects)


def asks(message: Any) -> bool:
    """Return True if a client's frame is an initialize with the capability."""
    if not isinstance(message, dict) or message.get("method") != "initialize":
        return False
    params = message.get("params")
    text = params.get("capabilities") if isinstance(params, dict) else None
    return isinstance(text, dict) and text.get(CAPABILITY) is True


def refused(value: Any) -> bool:
    """Return True if the server refuses an experimental member of this value when the client lacks the capability."""
    return not (value is None or value is False or value == [])
