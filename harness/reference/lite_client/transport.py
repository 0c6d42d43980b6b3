"""HTTP: one POST, its status, and its body as it comes in."""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from harness.reference.lite_client.errors import Problem

PIECE = 1 << 16


class Answer:
    """The answer to a POST; `chunks` or `read` gives the body, once. Close it."""

    def __init__(self, url: str, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._url = url
        self._connection = connection
        self._response = response
        self.status = response.status
        self.reason = response.reason

    def chunks(self) -> Iterator[bytes]:
        """Yield the body as it arrives; raises `Problem` when it breaks off or nothing comes for too long."""
        try:
            while piece := self._response.read1(PIECE):
                yield piece
        except (OSError, http.client.HTTPException) as error:
            raise broken(self._url, error) from error

    def read(self) -> bytes:
        """Return the whole body."""
        return b"".join(self.chunks())

    def close(self) -> None:
        """Close the connection."""
        self._response.close()
        self._connection.close()


def post(url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> Answer:
    """Send a POST and wait for the head of its answer; `timeout` in seconds without a byte. Raises `Problem`."""
    parts = urlsplit(url)
    kind = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}.get(parts.scheme)
    try:
        port = parts.port
    except ValueError:
        kind = None
    if kind is None or not parts.hostname:
        raise Problem(f"{url!r} is no HTTP address.")
    connection = kind(parts.hostname, port, timeout=timeout)
    try:
        connection.request("POST", parts.path + (f"?{parts.query}" if parts.query else ""), body, dict(headers))
        return Answer(url, connection, connection.getresponse())
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise broken(url, error) from error


def broken(url: str, error: Exception) -> Problem:
    """Say in a sentence how a connection failed."""
    if isinstance(error, TimeoutError):
        return Problem(f"Nothing came from {url} for too long (LITE_TIMEOUT). Try again.")
    if isinstance(error, http.client.IncompleteRead):
        return Problem(f"The stream from {url} was cut off. Try again.")
    what = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return Problem(f"The connection to {url} failed: {what}.")
