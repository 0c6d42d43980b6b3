"""Recognise the host names of this computer (`localhost`, `127.0.0.1`, ...).

A request to any other host may cost money, so the user must be warned before it is sent.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback(url: str) -> bool:
    """Return True if the host in a URL is this computer."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
