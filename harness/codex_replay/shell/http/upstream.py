"""The base URL of the server to which the recorder passes on HTTP requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from codex_replay.shell.http.client_requests import Pairs


class Upstream:
    """The server to which requests are passed on: its host, its port, whether it uses TLS, and the path that is put before the
    client's path. ws:// is the same as http://, and wss:// is the same as https://.

    Raises ValueError.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("ws", "wss"):
            url = f"http{url[2:]}"
            parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not an http, https, ws or wss URL; give one such as https://host/base")
        if parts.query or parts.fragment:
            raise ValueError(f"{url!r} has a query or a fragment; give the base URL only")
        self.url = url
        self.tls = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port or (443 if self.tls else 80)
        self.netloc = parts.netloc.rpartition("@")[2]
        self.base = parts.path.rstrip("/")

    def rewrite(self, target: str, headers: Pairs) -> tuple[str, Pairs]:
        """Return the target and headers with which the recorder passes on a request."""
        named = [(name, self.netloc if name.lower() == "host" else value) for name, value in headers]
        return (self.base + target if target.startswith("/") else target), named

    def context(self) -> Any:
        """Return the TLS settings for the connection to the server, or None for plain HTTP.

        Only the protocol HTTP/1.1 is offered.
        """
        if not self.tls:
            return None
        import ssl

        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context
