"""Detect the capability that gives a client the experimental part of the protocol.

From version 0.95 on, the Codex binary generates two schema bundles. The plain bundle leaves out the experimental parts;
with the option ``--experimental``, Codex generates the other bundle, which includes them. A client without
``capabilities.experimentalApi`` gets an error (-32600) for messages and members that only the experimental bundle has, such
as "thread/start.dynamicTools requires experimentalApi capability". The server does not refuse an experimental member whose
value is null, false or an empty list. A version has an experimental bundle if its plain bundle lets `initialize` declare
the capability.
"""

from __future__ import annotations

from typing import Any

from codex_replay.protocol.drift.shapes.read import Reader
from codex_replay.protocol.schema.bundle import Bundle

#: The member of ``params.capabilities`` of initialize, which must be true.
CAPABILITY = "experimentalApi"
#: How a person names it.
SAID = f"capabilities.{CAPABILITY}"


def declares(bundle: Bundle) -> bool:
    """Return True if a bundle lets `initialize` declare the capability: then the version also has an experimental bundle."""
    params = bundle.params("client-request", "initialize")
    if params is None:
        return False
    reader = Reader(dict(params.document))
    found = [each for params in reader.shape(params.node).objects for each in [params.properties.get("capabilities")]]
    return any(CAPABILITY in each.properties for node in found if node is not None for each in reader.shape(node).objects)


def asks(message: Any) -> bool:
    """Return True if a client's frame is an `initialize` that declares the capability."""
    if not isinstance(message, dict) or message.get("method") != "initialize":
        return False
    params = message.get("params")
    text = params.get("capabilities") if isinstance(params, dict) else None
    return isinstance(text, dict) and text.get(CAPABILITY) is True


def refused(value: Any) -> bool:
    """Return True if the server refuses an experimental member with the given value from a client without the capability."""
    return not (value is None or value is False or value == [])
