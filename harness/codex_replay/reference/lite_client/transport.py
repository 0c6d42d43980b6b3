"""Send one HTTP/1.1 POST on a new connection, and read the status and the body (in chunks) of the response.

A bare socket is used, because loading an HTTP library would take most of the time of a client that runs for one prompt.
Loading `urllib.parse` and `socket` also takes time. To save this time, the client loads only the C module `_socket` if the
connection has no TLS.
"""

from __future__ import annotations

import _socket as socket

from codex_replay.reference.lite_client.errors import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PIECE = 1 << 16
#: What can be spoken, and the port where the address names none.
PORTS = {"http": 80, "https": 443}
#: No head of an answer, and no line between two chunks, is longer than this.
LONGEST_LINE = 1 << 16


class Broken(Exception):
    """The response is not HTTP, or ends too early.

    The message of the exception is the end of a sentence, which the caller begins.
    """


class Address:
    """The parts of a URL that a request needs. Raises ValueError if the URL is not an HTTP URL."""

    def __init__(self, url: str) -> None:
        self.scheme, _, rest = url.partition("#")[0].partition("://")
        authority = rest.replace("?", "/").partition("/")[0]
        self.target = rest.removeprefix(authority)
        if not self.target.startswith("/"):
            self.target = f"/{self.target}"
        self.host = authority.rpartition("@")[2]
        bare = ":" not in self.host or self.host.endswith("]")  # [::1] has no port, [::1]:80 has
        self.name, _, port = (self.host, "", "") if bare else self.host.rpartition(":")
        self.name = self.name.strip("[]")
        self.port = int(port) if port else PORTS.get(self.scheme, 0)
        if self.scheme not in PORTS or not self.name or not 0 < self.port < 1 << 16:
            raise ValueError


class Reader:
    """Reads from a connection, by lines or by numbers of bytes."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = b""

    def some(self, most: int = PIECE) -> bytes:
        """Wait for data of the server and return at most `most` bytes. Return b"" at the end of the connection."""
        found = self._rest or self._connection.recv(PIECE)
        self._rest = found[most:]
        return found[:most]

    def line(self) -> bytes:
        """Return the next line without its line end; raises `Broken` if the connection has no further line."""
        while b"\n" not in self._rest:
            piece = self._connection.recv(PIECE)
            if not piece or len(self._rest) > LONGEST_LINE:
                raise Broken("it was cut off" if not piece else "it is not HTTP")
            self._rest += piece
        found, _, self._rest = self._rest.partition(b"\n")
        return found.removesuffix(b"\r")

    def exactly(self, length: int) -> Iterator[bytes]:
        """Yield the next `length` bytes of the response, in pieces as they arrive.

        Raises `Broken` if the connection ends before all bytes have arrived.
        """
        while length:
            piece = self.some(length)
            if not piece:
                raise Broken("it was cut off")
            length -= len(piece)
            yield piece

    def until_the_end(self) -> Iterator[bytes]:
        """Yield all bytes until the end of the connection."""
        while piece := self.some():
            yield piece

    def chunked(self) -> Iterator[bytes]:
        """Yield the content of the HTTP chunks, up to the empty chunk at the end."""
        while length := _number(self.line().partition(b";")[0], 16):
            yield from self.exactly(length)
            self.line()
        while self.line():
            pass  # a trailer


class Answer:
    """The response to a POST.

    Call either `chunks` or `read`, and only once, to get the body. The caller must close the response.
    """

    def __init__(self, url: str, connection: socket.socket) -> None:
        self._url = url
        self._connection = connection
        self._reader = Reader(connection)
        self.status, self.reason = self._status()
        while 100 <= self.status < 200:
            self._headers()
            self.status, self.reason = self._status()
        self.headers = self._headers()

    def _status(self) -> tuple[int, str]:
        version, _, rest = self._reader.line().decode("latin-1").partition(" ")
        number, _, reason = rest.partition(" ")
        if not version.startswith("HTTP/1."):
            raise Broken("it is not HTTP")
        return _number(number.encode(), 10), reason

    def _headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while line := self._reader.line().decode("latin-1"):
            name, _, value = line.partition(":")
            found[name.strip().lower()] = value.strip()
        return found

    def _body(self) -> Iterator[bytes]:
        if self.headers.get("transfer-encoding", "").lower().endswith("chunked"):
            return self._reader.chunked()
        if "content-length" in self.headers:
            return self._reader.exactly(_number(self.headers["content-length"].encode(), 10))
        return self._reader.until_the_end()

    def chunks(self) -> Iterator[bytes]:
        """Yield the parts of the response body as they arrive.

        Raises `Problem` if the body ends too early, or if no byte arrives for too long.
        """
        try:
            yield from self._body()
        except (OSError, Broken) as error:
            raise broken(self._url, error) from error

    def read(self) -> bytes:
        """Return the whole body."""
        return b"".join(self.chunks())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def post(url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> Answer:
    """Send a POST and wait for the status and headers of the response.

    `timeout` is the longest time, in seconds, without a received byte.

    Raises `Problem` if no response comes.
    """
    try:
        address = Address(url)
        head = request_head(address, headers, len(body))
    except ValueError as error:
        raise Problem(f"{url!r} is not an HTTP URL, or a header is invalid.") from error
    connection = None
    try:
        connection = connect(address, timeout)
        connection.sendall(head + body)
        return Answer(url, connection)
    except (OSError, Broken) as error:
        if connection is not None:
            connection.close()
        raise broken(url, error) from error


def request_head(address: Address, headers: Mapping[str, str], length: int) -> bytes:
    """Return the bytes of the head of a POST. Raises ValueError if the target or a header contains a line end."""
    lines = [f"POST {address.target} HTTP/1.1", f"Host: {address.host}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {length}", "Connection: close", "", ""]
    if any(c in line for line in lines for c in "\r\n\0"):
        raise ValueError
    return "\r\n".join(lines).encode("latin-1")


def connect(address: Address, timeout: float) -> socket.socket:
    """Open a connection to the server in a URL. For https, the connection is encrypted."""
    if address.scheme == "https":
        return encrypted(address, timeout)
    failed: OSError | None = None
    name = address.name.encode() if address.name.isascii() else address.name
    for family, kind, protocol, _, where in socket.getaddrinfo(name, address.port, 0, socket.SOCK_STREAM):
        connection = socket.socket(family, kind, protocol)
        connection.settimeout(timeout)
        try:
            connection.connect(where)
            return connection
        except OSError as error:
            connection.close()
            failed = error
    raise failed or OSError("the name has no address")


def encrypted(address: Address, timeout: float) -> socket.socket:
    """Open an encrypted connection."""
    import ssl  # late: they are slow to load, and a test needs neither
    from socket import create_connection

    connection = create_connection((address.name, address.port), timeout)
    try:
        return ssl.create_default_context().wrap_socket(connection, server_hostname=address.name)
    except OSError:
        connection.close()
        raise


def broken(url: str, error: Exception) -> Problem:
    """Return a `Problem` that describes how a connection failed."""
    if isinstance(error, TimeoutError):
        return Problem(f"Nothing came from {url} for too long (LITE_TIMEOUT). Try again.")
    if isinstance(error, Broken):
        return Problem(f"The answer from {url} cannot be read: {error}. Try again.")
    return Problem(f"The connection to {url} failed: {cause(error)}.")


def cause(error: Exception) -> str:
    """Return the reason why a connection failed, in the words of the operating system or of the TLS library."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _number(text: bytes, base: int) -> int:
    """Parse a number (a length or a status) in the head of a response. Raises `Broken` if the text is not a number."""
    text = text.strip()
    if not text.isalnum() or len(text) > 16:
        raise Broken("it is not HTTP")
    try:
        return int(text, base)
    except ValueError:
        raise Broken("it is not HTTP") from None
