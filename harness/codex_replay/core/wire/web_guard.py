"""Detect requests to a local server that come from a web page of another site, by the headers that browsers add.

Any web page can make a browser on this computer send requests to a local server. Browsers add two headers to their
requests, and a web page cannot forge these headers. The header `Host` has the name that the page used for the server, even
if an attacker's DNS resolves this name to 127.0.0.1. The header `Origin` (without `Origin`: `Sec-Fetch-Site`) shows the
site of the page. Programs other than browsers send neither `Origin` nor `Sec-Fetch-Site`.

Sources: RFC 9112, section 3.2, for Host; the Fetch standard for Origin; the Fetch Metadata specification for Sec-Fetch-Site.
"""

from __future__ import annotations

from collections.abc import Iterable

from codex_replay.core.text.truncate import shortened

#: Addresses that stand for every address of the machine: whoever listens there is reached by any of them.
WILDCARDS = ("", "0.0.0.0", "[::]", "::")
#: The headers of a request that no page of another site made.
_OWN = ("none", "same-origin", "same-site")
_SHOWN = 100  # characters of a host
_PORT = 5  # digits


class WebGuard:
    """The check of requests to a server that listens at the address `bound`; `allowed` are further names of the server."""

    def __init__(self, bound: str, allowed: Iterable[str] = ()) -> None:
        self._any_address = bound in WILDCARDS
        self._names = {name.lower() for name in allowed} | {bound.lower()}
        if ":" in bound:
            self._names.add(f"[{bound.lower()}]")
        self._good: set[str] = set()  # Host headers that were already judged

    def refusal(self, headers: Iterable[tuple[str, str]], target: str = "/") -> str | None:
        """Return the reason why a request is refused, or None if the request is allowed."""
        hosts, origin, site = [], None, None
        for name, value in headers:
            if len(name) == 4 and name.lower() == "host":
                hosts.append(value)
            elif len(name) == 6 and name.lower() == "origin":
                origin = value
            elif len(name) == 14 and name.lower() == "sec-fetch-site":
                site = value
        if not target.startswith("/") and "://" in target:
            hosts.append(target.partition("://")[2].partition("/")[0])
        for host in hosts:
            if host not in self._good:
                if not self._knows(_name(host)):
                    return (
                        f'The host "{shortened(host, _SHOWN)}" is not a name of this server. A web page may have reached the '
                        f"server through a name that "
                        "resolves to this machine. Use 127.0.0.1 or localhost, or start the server with --allow-host NAME."
                    )
                if len(self._good) < 64:
                    self._good.add(host)
        if origin is not None and not self._knows(_name(origin.partition("://")[2] or "null")):
            where = shortened(origin, _SHOWN)
            return (
                f'A web page of "{where}" must not send requests to this server. To allow such requests, start the server with '
                f"--allow-host NAME."
            )
        if origin is None and site is not None and site.lower() not in _OWN:
            return "A web page of another site must not send requests to this server."
        return None

    def _knows(self, name: str) -> bool:
        if name in ("localhost", "[::1]") or name in self._names:
            return True
        return is_address(name) and (self._any_address or name.startswith("127."))


def from_page(headers: Iterable[tuple[str, str]]) -> bool:
    """Return True if a web page has sent the request, whatever the origin of the page."""
    for name, value in headers:
        low = name.lower()
        if low == "origin" or (low == "sec-fetch-site" and value.lower() != "none"):
            return True
    return False


def is_address(name: str) -> bool:
    """Return True for a literal IP address, which no DNS can resolve to another address."""
    if name.startswith("["):
        return name.endswith("]") and set(name[1:-1]) <= set("0123456789abcdef:.")
    return name.count(".") == 3 and set(name) <= set("0123456789.")


def _name(host: str) -> str:
    """Return the name in HOST or HOST:PORT, in lower case and without a final dot.

    A port is up to five digits. A host with anything else after its name is returned whole, so that no known name equals it.
    """
    host = host.strip().lower()
    name, sign, rest = host.partition("]" if host.startswith("[") else ":")
    colon, port = (rest[:1], rest[1:]) if sign == "]" else (sign, rest)
    if (colon and colon != ":") or len(port) > _PORT or (port and not (port.isascii() and port.isdigit())):
        return host
    return name + sign if sign == "]" else name.removesuffix(".")
