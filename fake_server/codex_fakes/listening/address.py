"""Parse the value of `--listen` in the same way as the real Codex 0.169.0."""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from ipaddress import ip_address
from typing import NamedTuple

_KNOWN = "`stdio://`, `unix://`, `unix://PATH`, `ws://IP:PORT`, or `off`"
#: The most bytes of the path of a socket file: sun_path of the system, without its NUL.
_LONGEST = 103 if sys.platform == "darwin" else 107
_WEBSOCKET, _UNIX = "ws://", "unix://"


class Address(NamedTuple):
    """The address of an app-server: `host` and `port`, or the socket file `path`."""

    host: str = ""
    port: int = 0
    path: str = ""


class BadAddress(ValueError):
    """The server cannot listen at the address that the user gave.

    The message of the exception is that of the real server, and `status` is the exit status.
    """

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


def parse(value: str, home: str) -> Address:
    """Return the address at which the server must listen.

    `home` is the directory CODEX_HOME. Raises `BadAddress` for an invalid value.
    """
    if value == "off":
        raise BadAddress("Error: no transport configured; use --listen or enable remote control", 1)
    if value.startswith(_UNIX):
        return Address(path=value.removeprefix(_UNIX) or default_socket(home))
    if not value.startswith(_WEBSOCKET):
        raise _invalid(value, f"unsupported --listen URL `{value}`; expected {_KNOWN}")
    host, _, port = value.removeprefix(_WEBSOCKET).rpartition(":")
    bare = host[1:-1] if host[:1] == "[" and host[-1:] == "]" else host
    try:
        address = ip_address(bare)
        if (address.version == 6) != (bare != host) or "%" in bare:
            raise ValueError
        if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
            raise ValueError
    except ValueError:
        raise _invalid(value, f"invalid websocket --listen URL `{value}`; expected `ws://IP:PORT`") from None
    if not address.is_loopback:
        raise BadAddress(
            f"Error: refusing to start non-loopback websocket listener {value.removeprefix(_WEBSOCKET)} without auth; configure "
            "`--ws-auth capability-token` or `--ws-auth signed-bearer-token`",
            1,
        )
    return Address(str(address), int(port))


def default_socket(home: str) -> str:
    """Return the path of the socket file that `unix://` means, in a folder of `home` that only the user can open.

    Raises `BadAddress` if the folder cannot be made.
    """
    folder = os.path.join(home, "app-server-control")
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
    except OSError as error:
        raise unusable(error) from None
    return os.path.join(folder, "app-server-control.sock")


def claim(path: str) -> None:
    """Prepare the path of a socket file: remove a socket that no server uses, and keep any other file.

    Raises `BadAddress` if the path cannot be used.
    """
    if (size := len(os.fsencode(path))) > _LONGEST:
        raise BadAddress(
            f"Error: the path of the socket has {size} bytes, but fake-codex can use at most {_LONGEST}; "
            f"give --listen a shorter path: {path}",
            1,
        )
    if not os.path.lexists(path):
        return
    if not os.path.exists(path):  # a link to nothing
        raise unusable(FileExistsError(errno.EEXIST, ""))
    if not stat.S_ISSOCK(os.stat(path).st_mode):
        raise BadAddress(f"Error: app-server control socket path exists and is not a socket: {path}", 1)
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            os.unlink(path)
            return
    raise BadAddress(f"Error: app-server control socket is already in use at {path}", 1)


def unusable(error: OSError) -> BadAddress:
    """Return the real server's error message for an address that the operating system refuses."""
    if error.errno is None:
        return BadAddress(f"Error: {error}", 1)
    words = "Address in use" if error.errno == errno.EADDRINUSE else os.strerror(error.errno)
    return BadAddress(f"Error: {words} (os error {error.errno})", 1)


def _invalid(value: str, why: str) -> BadAddress:
    return BadAddress(f"error: invalid value '{value}' for '--listen <URL>': {why}\n\nFor more information, try '--help'.")
